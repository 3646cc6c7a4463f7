"""Expected log-utilities of queries under SVGPs: the term that the EULBO adds to the ELBO.

Maus et al. (2024), section 3. A utility is a function of the posteriors of `b` processes at `k` points each: the `q`
queries and, for the knowledge gradient, a maximiser of the mean for each sample. Softplus makes improvements positive;
its logarithm neither underflows nor overflows. Gradients are by hand: most of these tensors are small, and automatic
differentiation takes several times as long as the operations themselves.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from plumbline.acquisition.quadrature import gauss_hermite
from plumbline.methods.sparse.reading import Reading, variances, variances_vjp
from plumbline.models.algebra import SparseKernel, cholesky_vjp, inner, product, squared_distances
from plumbline.models.svgp.cross_covariance import JITTER, Covariances, covariances
from plumbline.models.svgp.numerics import log_softplus
from plumbline.models.svgp.objective import Cotangents, Forward

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


def greatest_log_softplus(values: Tensor, best: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean over samples of `log softplus(max_j values_ij - best)`, `b`, and its gradient in the values.

    Args:
        values: `b x S x q`.
        best: `b`.
    """
    greatest, where = values.max(-1, keepdim=True)
    logs, slopes = log_softplus(greatest.squeeze(-1) - best.unsqueeze(-1))
    slopes = slopes / values.shape[-2]
    return logs.mean(-1), torch.zeros_like(values).scatter_(-1, where, slopes.unsqueeze(-1))


@dataclass(frozen=True)
class Prior:
    """Prior covariances between two subsets of the points, equal or disjoint, and their gradients.

    Attributes:
        scaled: `b x k x d`, all points, in lengthscales.
        rows, columns: the two subsets.
        covariances: `b x r x c`.
        lengthscale, outputscale: `b`.
    """

    scaled: Tensor
    rows: slice
    columns: slice
    covariances: Covariances
    lengthscale: Tensor
    outputscale: Tensor

    @property
    def value(self) -> Tensor:
        """The covariances, `b x r x c`, without jitter."""
        return self.covariances.value

    def vjp(self, grad_value: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradient of `sum(grad_value * value)` in lengthscale and outputscale, both `b`."""
        _, slope, r2 = self.covariances
        return inner(grad_value * slope, r2) / self.lengthscale, inner(grad_value, self.value) / self.outputscale

    def vjp_to_points(self, grad_value: Tensor) -> Tensor:
        """Return the gradient of `sum(grad_value * value)` in all points, `b x k x d`."""
        H = grad_value * self.covariances.slope
        gradient = torch.zeros_like(self.scaled)
        rows, columns = self.scaled[..., self.rows, :], self.scaled[..., self.columns, :]
        if self.rows == self.columns:
            H = H + H.mT
        else:
            gradient[..., self.columns, :] = product(H.mT, rows).addcmul_(H.sum(-2).unsqueeze(-1), columns, value=-1)
        gradient[..., self.rows, :] = product(H, columns).addcmul_(H.sum(-1).unsqueeze(-1), rows, value=-1)
        return gradient.mul_(self.lengthscale.reciprocal()[:, None, None])


@dataclass(frozen=True)
class PointPosteriors:
    """The posteriors of `b` processes at `k` points each.

    Attributes:
        kernel: kernel of the processes.
        scaled: `b x k x d`, the points, in lengthscales.
        A: `b x m x k`, whitened cross-covariances.
        B: `b x (m + 1) x k`; see `plumbline.models.svgp.objective.Forward`.
        constant, lengthscale, outputscale, noise: `b`.
    """

    kernel: SparseKernel
    scaled: Tensor
    A: Tensor
    B: Tensor
    constant: Tensor
    lengthscale: Tensor
    outputscale: Tensor
    noise: Tensor

    @classmethod
    def of(cls, passed: Forward, first: int = 0) -> "PointPosteriors":
        """Return the posteriors of a forward pass at the points from `first` on."""
        whitened, inducing = passed.whitened, passed.prepared.inducing
        return cls(
            inducing.kernel,
            whitened.scaled[..., first:, :],
            whitened.A[..., first:],
            passed.B[..., first:],
            passed.parameters.constant,
            inducing.lengthscale,
            inducing.outputscale,
            passed.prepared.noise,
        )

    def part(self, points: slice) -> "PointPosteriors":
        """Return the posteriors at some of the points."""
        return replace(self, scaled=self.scaled[..., points, :], A=self.A[..., points], B=self.B[..., points])

    @cached_property
    def mean(self) -> Tensor:
        """Posterior means of f, `b x k`."""
        return self.constant.unsqueeze(-1) + self.B[..., -1, :]

    @cached_property
    def variance(self) -> Tensor:
        """Posterior variances of f, `b x k`; rounding may make them negative."""
        return self.residual + self.W.square().sum(-2)

    @cached_property
    def sd(self) -> Tensor:
        """Posterior standard deviations of f, `b x k`."""
        return self.variance.clamp_min(JITTER).sqrt()

    @cached_property
    def residual(self) -> Tensor:
        """Prior variances unexplained by the inducing values, `b x k`."""
        return (self.outputscale + JITTER).unsqueeze(-1) - self.A.square().sum(-2)

    @property
    def W(self) -> Tensor:  # noqa: N802
        """`C' A`, the part of `B` behind the covariances: `b x m x k`."""
        return self.B[..., :-1, :]

    def variances(self, reading: Reading) -> tuple[Tensor, Tensor]:
        """Return the variances with which observations are drawn and conditioned on, both `b x k`."""
        return variances(self.variance.clamp_min(JITTER), self.noise.unsqueeze(-1), reading)

    def grad_variance(self, grad_sd: Tensor) -> Tensor:
        """Map a gradient in the standard deviations to that in the variances; both `b x k`."""
        return grad_sd / (2 * self.sd) * (self.variance >= JITTER)

    def prior(self, rows: slice, columns: slice) -> Prior:
        """Return prior covariances between two subsets of the points, equal or disjoint."""
        some = self.scaled[..., rows, :]
        r2 = squared_distances(some, some if rows == columns else self.scaled[..., columns, :])
        prior = covariances(r2, self.outputscale, self.kernel)
        return Prior(self.scaled, rows, columns, prior, self.lengthscale, self.outputscale)

    def covariance(self, prior: Prior) -> Tensor:
        """Return the posterior covariances of f among the points of `prior`, whose rows and columns are equal.

        The result, `b x r x r`, includes jitter.
        """
        A, W = self.A[..., prior.rows], self.W[..., prior.rows]
        posterior = prior.value - product(A.mT, A) + product(W.mT, W)
        posterior.diagonal(dim1=-2, dim2=-1).add_(JITTER)
        return posterior


@dataclass(frozen=True)
class ExpectedLog:
    """`E log u` of `b` processes, and its derivatives in their posteriors at `k` points.

    Attributes:
        value: `b`.
        grad_whitened: `b x m x k`, in `A`.
        grad_product: `b x (m + 1) x k`, in `B`.
        grad_constant: `b`.
        grad_outputscale: `b`, at fixed `A`, `B` and prior covariances.
        grad_priors: prior covariances, with the derivatives in them.
        grad_noise: `b`, in the variance of the noise; None where no value depends on it.
    """

    value: Tensor
    grad_whitened: Tensor
    grad_product: Tensor
    grad_constant: Tensor
    grad_outputscale: Tensor
    grad_priors: tuple[tuple[Prior, Tensor], ...] = ()
    grad_noise: Tensor | None = None

    def cotangents(self) -> Cotangents:
        """Return the derivatives in the parts of the processes' forward pass."""
        grad_lengthscale, grad_outputscale = torch.zeros_like(self.value), self.grad_outputscale
        for prior, grad_value in self.grad_priors:
            lengthwise, outward = prior.vjp(grad_value)
            grad_lengthscale, grad_outputscale = grad_lengthscale + lengthwise, grad_outputscale + outward
        grad_noise = torch.zeros_like(self.value) if self.grad_noise is None else self.grad_noise
        return Cotangents(
            self.grad_whitened, self.grad_product, self.grad_constant, grad_lengthscale, grad_outputscale, grad_noise
        )

    def grad_points(self, passed: Forward) -> Tensor:
        """Return the gradient in the points of a forward pass, `b x k x d`."""
        gradient = passed.vjp_to_points(self.grad_whitened, self.grad_product)
        for prior, grad_value in self.grad_priors:
            gradient += prior.vjp_to_points(grad_value)
        return gradient


class SoftUtility(ABC):
    """A utility with a computable expected logarithm.

    Attributes:
        best: `b`, the value to improve on.
        q: number of queries; the points after them are the utility's own.
    """

    best: Tensor
    q: int

    @abstractmethod
    def expected_log(self, posteriors: PointPosteriors) -> ExpectedLog:
        """Return `E log u` of each process, with its derivatives."""

    @abstractmethod
    def of(self, going: Tensor) -> "SoftUtility":
        """Return the utility of the processes with the indices `going`."""


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
    section 3.3, refers to. The variance `bounded_j` is at least the jitter: where f is known nothing moves.

    Args:
        posteriors: posteriors at the `q` queries and `T` maximisers.
        queries: posteriors at the queries alone.
        observed: `b x S x q`, the observations.
        reading: whether they are conditioned on with noise.
        appended: makes `y_ij` a noise-free inducing value, as the published code does. A further row of the Cholesky
            factor, `A_j'` and `sqrt(k_jj - |A_j|^2)`, has the gain `(k_tj - A_t' A_j) / (k_jj - |A_j|^2)`, as if the
            other inducing values were known too. It has a pole at every inducing point.
        centred: False leaves the prior mean in `y_ij`, as the published code does.
    """
    q = observed.shape[-1]
    prior = posteriors.prior(slice(q, None), slice(q))
    covariance = prior.value - product(posteriors.A[..., q:].mT, queries.A)
    if appended:
        bounded = queries.residual.clamp_min(JITTER)
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
            factor, _ = torch.linalg.cholesky_ex(posteriors.covariance(joint))
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
            grad_residual = grad_variance + grad_bounded * (queries.residual >= JITTER)
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
