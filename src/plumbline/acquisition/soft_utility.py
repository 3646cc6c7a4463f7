"""Expected log-utilities of queries under sparse processes: what the EULBO adds to the ELBO.

Maus et al. (2024), section 3. A utility sees what `b` processes say of `k` points each: the `q` queries and, for the
knowledge gradient, a maximiser of the mean for each of its samples. Softplus makes improvements positive; its logarithm
neither underflows nor overflows.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from plumbline.models.sparse import Forward, Parameters, Pulls
from plumbline.models.steady import log_softplus
from plumbline.models.whitened import JITTER, Correlation, SparseKernel, product, squared_distances

NODES = 20
"""Nodes of the Gauss-Hermite quadrature; AABO, table 1."""


def expected_log_softplus(mean: Tensor, sd: Tensor, nodes: int = NODES) -> Tensor:
    """Return `E log softplus(g)` of `g ~ N(mean, sd^2)`, elementwise, by Gauss-Hermite quadrature."""
    points, weights = np.polynomial.hermite.hermgauss(nodes)
    at = torch.from_numpy(np.sqrt(2.0) * points).to(mean)
    values = log_softplus(mean.unsqueeze(-1) + sd.unsqueeze(-1) * at)
    return (values * torch.from_numpy(weights / np.sqrt(np.pi)).to(mean)).sum(-1)


@dataclass(frozen=True)
class Sight:
    """What `b` processes say of `k` points each.

    Attributes:
        kernel: of the processes.
        points: `b x k x d`, in their inputs.
        A: `b x m x k`, whitened cross-covariances.
        B: `b x (m + 1) x k`; see `plumbline.models.sparse.Forward`.
        constant, lengthscale, outputscale: `b`.
    """

    kernel: SparseKernel
    points: Tensor
    A: Tensor
    B: Tensor
    constant: Tensor
    lengthscale: Tensor
    outputscale: Tensor

    @cached_property
    def mean(self) -> Tensor:
        """Posterior means of f, `b x k`."""
        return self.constant.unsqueeze(-1) + self.B[..., -1, :]

    @cached_property
    def sd(self) -> Tensor:
        """Posterior standard deviations of f, `b x k`."""
        variance = self.residual + self.B[..., :-1, :].square().sum(-2)
        return variance.clamp_min(JITTER).sqrt()

    @cached_property
    def residual(self) -> Tensor:
        """Prior variances that inducing values leave unexplained, `b x k`."""
        return (self.outputscale + JITTER).unsqueeze(-1) - self.A.square().sum(-2)

    def prior(self, rows: slice, columns: slice) -> Tensor:
        """Return prior covariances between two parts of the points."""
        scaled = self.points / self.lengthscale[:, None, None]
        r2 = squared_distances(scaled[..., rows, :], scaled[..., columns, :])
        return self.outputscale[:, None, None] * Correlation.apply(r2, self.kernel)

    def covariance(self) -> Tensor:
        """Return the posterior covariances of f between all of the points, jitter included: `b x k x k`."""
        every = slice(None)
        W = self.B[..., :-1, :]
        jitter = JITTER * torch.eye(self.A.shape[-1], dtype=self.A.dtype, device=self.A.device)
        return self.prior(every, every) - self.A.mT @ self.A + W.mT @ W + jitter


class SoftUtility(ABC):
    """A utility whose expected logarithm is known; where its points are queries and where they are its own.

    Attributes:
        best: `b`, the value to improve on.
        q: number of queries; the points after them are the utility's own.
    """

    best: Tensor
    q: int

    @abstractmethod
    def expected_log(self, sight: Sight) -> Tensor:
        """Return `E log u` of each process, `b`."""

    @abstractmethod
    def of(self, going: Tensor) -> "SoftUtility":
        """Return the utility of some of the processes: `going` holds their numbers."""


@dataclass(frozen=True)
class SoftImprovement(SoftUtility):
    """`softplus(f(x) - best)`; AABO, section 3.2. At q = 1, by quadrature."""

    best: Tensor
    q: int = 1

    def expected_log(self, sight: Sight) -> Tensor:
        """Return `E log u` of each process, `b`."""
        return expected_log_softplus(sight.mean[..., 0] - self.best, sight.sd[..., 0])

    def of(self, going: Tensor) -> "SoftImprovement":
        """Return the utility of some of the processes."""
        return SoftImprovement(self.best[going])


@dataclass(frozen=True)
class SoftBatchImprovement(SoftUtility):
    """The greatest of `softplus(f(x_j) - best)`; AABO, section 3.4. From fixed base samples.

    Attributes:
        base: `b x S x q`, standard normal.
    """

    best: Tensor
    q: int
    base: Tensor

    def expected_log(self, sight: Sight) -> Tensor:
        """Return the mean over samples of `log u`, `b`."""
        factor, broken = torch.linalg.cholesky_ex(sight.covariance())
        values = sight.mean.unsqueeze(-2) + self.base @ factor.mT
        log_utility = log_softplus(values.amax(-1) - self.best.unsqueeze(-1)).mean(-1)
        return log_utility.masked_fill(broken != 0, torch.nan)

    def of(self, going: Tensor) -> "SoftBatchImprovement":
        """Return the utility of some of the processes."""
        return replace(self, best=self.best[going], base=self.base[going])


def imagined(sight: Sight, q: int, base: Tensor, doubled: bool = False) -> Tensor:
    """Return observations at the queries, `b x S x q`: `mean_j + sd_j eps_ij`; AABO, section 3.3.

    Args:
        sight: of the `q` queries and what comes after them.
        q: number of queries.
        base: `b x S x q`, standard normal draws eps.
        doubled: draw them as the published code does for q > 1: from the joint posterior, with `sd_j eps_ij` added
            once more, and read in another order than they were written, which mixes queries.
    """
    queries = slice(q)
    noise = sight.sd[..., queries].unsqueeze(-2) * base
    if not doubled:
        return sight.mean[..., queries].unsqueeze(-2) + noise
    factor, _ = torch.linalg.cholesky_ex(sight.covariance()[..., queries, queries])
    drawn = sight.mean[..., queries].unsqueeze(-2) + base @ factor.mT + noise
    return drawn.reshape(len(base), q, -1).mT


def mean_update(sight: Sight, q: int, observed: Tensor, centred: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Return what the means at maximisers become once a query has been observed: `mean_t + gain_tj * surprise_ij`.

    An observation `y_ij` at query j becomes a noise-free inducing value there. One more row of the Cholesky factor,
    `A_j'` and `sqrt(k_jj - |A_j|^2)`, gives the mean at maximiser t in `O(m)`:
    `mean_t + (k_tj - A_t' A_j) (y_ij - mean_j) / (k_jj - |A_j|^2)`. AABO, section 3.3.

    Args:
        sight: of the `q` queries and `T` maximisers.
        q: number of queries.
        observed: `b x S x q`, the observations.
        centred: False leaves the prior mean in `y_ij`, as the published code does.

    Returns:
        Means, `b x T`, gains, `b x T x q`, and surprises, `b x S x q`.
    """
    queries, maximisers = slice(q), slice(q, None)
    covariance = sight.prior(maximisers, queries) - product(sight.A[..., maximisers].mT, sight.A[..., queries])
    gain = covariance / sight.residual[..., queries].clamp_min(JITTER).unsqueeze(-2)
    surprise = observed - sight.mean[..., queries].unsqueeze(-2)
    if not centred:
        surprise = surprise + sight.constant[:, None, None]
    return sight.mean[..., maximisers], gain, surprise


@dataclass(frozen=True)
class SoftKnowledgeGradient(SoftUtility):
    """The greatest of `softplus(E[f(x'_i) | x_j, y_ij] - best)` over queries j; AABO, eq. 10 and section 3.4.

    The maximisers `x'_i`, one a sample, are points of the utility's own, behind the queries.

    Attributes:
        base: `b x S x q`, standard normal.
        doubled, centred: see `imagined` and `mean_update`.
    """

    best: Tensor
    q: int
    base: Tensor
    doubled: bool = False
    centred: bool = True

    def expected_log(self, sight: Sight) -> Tensor:
        """Return the mean over samples of `log u`, `b`."""
        observed = imagined(sight, self.q, self.base, self.doubled and self.q > 1)
        mean, gain, surprise = mean_update(sight, self.q, observed, self.centred)
        means = (mean.unsqueeze(-1) + gain * surprise).amax(-1)
        return log_softplus(means - self.best.unsqueeze(-1)).mean(-1)

    def of(self, going: Tensor) -> "SoftKnowledgeGradient":
        """Return the utility of some of the processes."""
        return replace(self, best=self.best[going], base=self.base[going])


def utility_gradient(
    utility: SoftUtility, passed: Forward, first: int, points: Tensor, kernel: SparseKernel
) -> tuple[Tensor, Pulls, Tensor]:
    """Return `E log u`, `b`, its derivatives in the parts of a forward pass, and the direct one in the points.

    Args:
        utility: of the points.
        passed: a forward pass whose columns from `first` on are the points.
        first: as said.
        points: `b x k x d`.
        kernel: of the processes.
    """
    parameters: Parameters = passed.parameters
    leaves: list[Tensor] = [
        points,
        passed.whitened.A[..., first:],
        passed.B[..., first:],
        parameters.constant,
        parameters.lengthscale,
        parameters.outputscale,
    ]
    with torch.enable_grad():
        leaves = [leaf.detach().requires_grad_() for leaf in leaves]
        value = utility.expected_log(Sight(kernel, *leaves))
        found = torch.autograd.grad(value.sum(), leaves, allow_unused=True, materialize_grads=True)
    to_points, to_whitened, to_product, to_constant, to_lengthscale, to_outputscale = found
    pulls = Pulls(to_whitened, to_product, to_constant, to_lengthscale, to_outputscale, torch.zeros_like(to_constant))
    return value.detach(), pulls, to_points
