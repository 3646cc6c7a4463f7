"""The soft knowledge gradient: the greatest mean after an imagined observation; AABO, sections 3.3 and 3.4."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from plumbline.methods.sparse.point_posteriors import PointPosteriors, Prior
from plumbline.methods.sparse.reading import Reading, variances_vjp
from plumbline.methods.sparse.soft_utility import ExpectedLog, SoftUtility, greatest_log_softplus
from plumbline.models.algebra import cholesky_vjp, product
from plumbline.models.svgp.cross_covariance import JITTER


def imagined(
    queries: PointPosteriors, base: Tensor, reading: Reading = "noise-free", factor: Tensor | None = None
) -> Tensor:
    """Return observations at the queries, `b x S x q`: `mean_j + sd_j eps_ij`; AABO, section 3.3.

    Args:
        queries: posteriors at the queries.
        base: `b x S x q`, standard normal draws eps.
        reading: whether sd is that of f or of an observation.
        factor: Cholesky factor of their posterior covariance, `b x q x q`, for draws as in the published code at q > 1.
            These are from the joint posterior, with `sd_j eps_ij` added again, and reshaped so that queries mix.
    """
    drawn = queries.mean.unsqueeze(-2) + queries.variances(reading)[0].sqrt().unsqueeze(-2) * base
    if factor is None:
        return drawn
    drawn = drawn + product(base, factor.mT)
    return drawn.reshape(len(base), base.shape[-1], -1).mT


@dataclass(frozen=True)
class MeanUpdate:
    """The means at `T` maximisers after observing a query: `mean_t + gain_tj * surprise_ij`.

    Attributes:
        prior: prior covariances between maximisers and queries.
        mean: `b x T`.
        gain: the Kalman gain, `b x T x q`, `covariance_tj / bounded_j`.
        bounded: `b x q`.
        surprise: `b x S x q`.
    """

    prior: Prior
    mean: Tensor
    gain: Tensor
    bounded: Tensor
    surprise: Tensor


def mean_update(
    posteriors: PointPosteriors,
    queries: PointPosteriors,
    observed: Tensor,
    reading: Reading = "noise-free",
    appended: bool = False,
    centred: bool = True,
) -> MeanUpdate:
    """Return the update of the means at maximisers by an observed query, in `O(m)` a pair.

    The process is conditioned on the observation `y_ij`: `mean_t + cov_tj (y_ij - mean_j) / bounded_j`, with posterior
    covariances `cov_tj = k_tj - A_t' A_j + W_t' W_j`. This is the online update (Maddox et al., 2021) that AABO,
    section 3.3, refers to. The variance `bounded_j` is at least the jitter, but with `appended`: where f is known
    nothing moves.

    Args:
        posteriors: posteriors at the `q` queries and `T` maximisers.
        queries: posteriors at the queries alone.
        observed: `b x S x q`, the observations.
        reading: whether they are conditioned on with noise.
        appended: makes `y_ij` a noise-free inducing value, as the published code does. A further row of the Cholesky
            factor, `A_j'` and `sqrt(k_jj - |A_j|^2)`, has the gain `(k_tj - A_t' A_j) / (k_jj - |A_j|^2)`, as if the
            other inducing values were known too. It has a pole at every inducing point, and is NaN where rounding, or a
            frozen factor, leaves no variance: then the training is repeated at lower rates, as in the code.
        centred: False leaves the prior mean in `y_ij`, as the published code does.
    """
    q = observed.shape[-1]
    prior = posteriors.prior(slice(q, None), slice(q))
    covariance = prior.value - product(posteriors.A[..., q:].mT, queries.A)
    if appended:
        unexplained = queries.residual - JITTER
        bounded = unexplained.where(unexplained > 0, torch.nan)
    else:
        covariance = covariance + product(posteriors.W[..., q:].mT, queries.W)
        bounded = queries.variances(reading)[1]
    surprise = observed - queries.mean.unsqueeze(-2)
    if not centred:
        surprise = surprise + posteriors.constant[:, None, None]
    return MeanUpdate(prior, posteriors.mean[..., q:], covariance / bounded.unsqueeze(-2), bounded, surprise)


@dataclass(frozen=True)
class SoftKnowledgeGradient(SoftUtility):
    """The greatest of `softplus(E[f(x'_i) | x_j, y_ij] - best)` over queries j; AABO, eq. 10 and section 3.4.

    The maximisers `x'_i`, one a sample, are the utility's own points, after the queries.

    Attributes:
        base: `b x S x q`, standard normal.
        reading, doubled, appended, centred: see `imagined` and `mean_update`.
    """

    best: Tensor
    q: int
    base: Tensor
    reading: Reading = "noise-free"
    doubled: bool = False
    appended: bool = False
    centred: bool = True

    def expected_log(self, posteriors: PointPosteriors) -> ExpectedLog:
        """Return the mean over samples of `log u`, with its derivatives.

        Gradients pass through gains to covariances and variances, and through surprises to the variances of the draws.
        The queries' means cancel, except with `doubled`: there observation and surprise are of different queries.
        """
        queries, maximisers = posteriors.part(slice(self.q)), slice(self.q, None)
        joint, factor = None, None
        if self.doubled and self.q > 1:
            joint = posteriors.prior(slice(self.q), slice(self.q))
            factor, info = torch.linalg.cholesky_ex(posteriors.covariance(joint))
            factor = factor.masked_fill(info[:, None, None] != 0, torch.nan)
        observed = imagined(queries, self.base, self.reading, factor)
        update = mean_update(posteriors, queries, observed, self.reading, self.appended, self.centred)
        means = update.mean.unsqueeze(-1) + update.gain * update.surprise
        value, grad_means = greatest_log_softplus(means, self.best)

        grad_gain, grad_surprise = grad_means * update.surprise, grad_means * update.gain
        grad_covariance = grad_gain / update.bounded.unsqueeze(-2)
        grad_bounded = -(grad_covariance * update.gain).sum(-2)
        grad_drawn = grad_surprise if factor is None else grad_surprise.mT.reshape(grad_surprise.shape)
        grad_of_draws = (grad_drawn * self.base).sum(-2) / (2 * queries.variances(self.reading)[0].sqrt())
        grad_conditioned = torch.zeros_like(grad_bounded) if self.appended else grad_bounded
        grad_variance, grad_noise = variances_vjp(grad_of_draws, grad_conditioned, self.reading)
        grad_variance = grad_variance * (queries.variance >= JITTER)
        grad_residual = grad_variance
        if self.appended:
            grad_residual = grad_variance + grad_bounded
        grad_A = -2 * grad_residual.unsqueeze(-2) * queries.A - product(posteriors.A[..., maximisers], grad_covariance)
        grad_W = 2 * grad_variance.unsqueeze(-2) * queries.W
        grad_mean = torch.zeros_like(grad_variance)
        grad_priors: tuple[tuple[Prior, Tensor], ...] = ((update.prior, grad_covariance),)
        if joint is not None and factor is not None:
            grad_joint = cholesky_vjp(factor, product(grad_drawn.mT, self.base))
            grad_A = grad_A - product(queries.A, 2 * grad_joint)
            grad_W = grad_W + product(queries.W, 2 * grad_joint)
            grad_mean = grad_drawn.sum(-2) - grad_surprise.sum(-2)
            grad_priors = (*grad_priors, (joint, grad_joint))

        grad_means_of_all = torch.cat([grad_mean, grad_means.sum(-1)], -1)
        grad_product = torch.zeros_like(posteriors.B)
        if not self.appended:
            grad_W = grad_W + product(posteriors.W[..., maximisers], grad_covariance)
            grad_product[..., :-1, maximisers] = product(queries.W, grad_covariance.mT)
        grad_product[..., :-1, : self.q] = grad_W
        grad_product[..., -1, :] = grad_means_of_all
        grad_constant = grad_means_of_all.sum(-1)
        if not self.centred:
            grad_constant = grad_constant + grad_surprise.sum((-1, -2))
        return ExpectedLog(
            value,
            torch.cat([grad_A, -product(queries.A, grad_covariance.mT)], -1),
            grad_product,
            grad_constant,
            grad_residual.sum(-1),
            grad_priors,
            grad_noise.sum(-1),
        )

    def of(self, going: Tensor) -> "SoftKnowledgeGradient":
        """Return the utility of some of the processes."""
        return replace(self, best=self.best[going], base=self.base[going])
