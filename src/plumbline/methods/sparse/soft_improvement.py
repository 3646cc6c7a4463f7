"""The soft improvement of a query or a batch of queries; AABO, sections 3.2 and 3.4."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from plumbline.acquisition.quadrature import gauss_hermite
from plumbline.methods.sparse.point_posteriors import PointPosteriors
from plumbline.methods.sparse.soft_utility import ExpectedLog, SoftUtility, greatest_log_softplus
from plumbline.models.algebra import cholesky_vjp, product
from plumbline.models.svgp.numerics import log_softplus

NODES = 20
"""Nodes of the Gauss-Hermite quadrature; AABO, table 1."""

EVERY = slice(None)


def expected_log_softplus(mean: Tensor, sd: Tensor, nodes: int = NODES) -> tuple[Tensor, Tensor, Tensor]:
    """Return `E log softplus(g)` for `g ~ N(mean, sd^2)`, elementwise by Gauss-Hermite quadrature, and its derivatives
    in mean and sd."""
    at, shares = (torch.from_numpy(part).to(mean) for part in gauss_hermite(nodes))
    values, slopes = log_softplus(mean.unsqueeze(-1) + sd.unsqueeze(-1) * at)
    slopes = slopes * shares
    return (values * shares).sum(-1), slopes.sum(-1), (slopes * at).sum(-1)


@dataclass(frozen=True)
class SoftImprovement(SoftUtility):
    """`softplus(f(x) - best)` at q = 1, by quadrature; AABO, section 3.2."""

    best: Tensor
    q: int = 1

    def expected_log(self, posteriors: PointPosteriors) -> ExpectedLog:
        """Return `E log u` of each process, with its derivatives."""
        value, grad_mean, grad_sd = expected_log_softplus(posteriors.mean - self.best.unsqueeze(-1), posteriors.sd)
        grad_variance = posteriors.grad_variance(grad_sd)
        twice = 2 * grad_variance.unsqueeze(-2)
        return ExpectedLog(
            value.squeeze(-1),
            -twice * posteriors.A,
            torch.cat([twice * posteriors.W, grad_mean.unsqueeze(-2)], -2),
            grad_mean.squeeze(-1),
            grad_variance.squeeze(-1),
        )

    def of(self, going: Tensor) -> "SoftImprovement":
        """Return the utility of some of the processes."""
        return SoftImprovement(self.best[going])


@dataclass(frozen=True)
class SoftBatchImprovement(SoftUtility):
    """The greatest of `softplus(f(x_j) - best)`, from fixed base samples; AABO, section 3.4.

    Attributes:
        base: `b x S x q`, standard normal.
    """

    best: Tensor
    q: int
    base: Tensor

    def expected_log(self, posteriors: PointPosteriors) -> ExpectedLog:
        """Return the mean over samples of `log u` of `mean + F eps`, with its derivatives; `F F'` the covariance.

        With `G` the gradient in the covariance `K - A'A + W'W`, those in `A` and `W` are `-2 A G` and `2 W G`.
        """
        prior = posteriors.prior(EVERY, EVERY)
        factor, broken = torch.linalg.cholesky_ex(posteriors.covariance(prior))
        values = posteriors.mean.unsqueeze(-2) + product(self.base, factor.mT)
        value, grad_values = greatest_log_softplus(values, self.best)
        grad_mean = grad_values.sum(-2)
        grad_covariance = cholesky_vjp(factor, product(grad_values.mT, self.base))
        twice = 2 * grad_covariance
        return ExpectedLog(
            value.masked_fill(broken != 0, torch.nan),
            product(posteriors.A, twice).neg_(),
            torch.cat([product(posteriors.W, twice), grad_mean.unsqueeze(-2)], -2),
            grad_mean.sum(-1),
            torch.zeros_like(value),
            ((prior, grad_covariance),),
        )

    def of(self, going: Tensor) -> "SoftBatchImprovement":
        """Return the utility of some of the processes."""
        return replace(self, best=self.best[going], base=self.base[going])
