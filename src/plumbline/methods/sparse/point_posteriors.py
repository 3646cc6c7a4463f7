"""Posteriors of SVGPs at a few points, and prior covariances among these with their vector-Jacobian products (VJPs)."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from plumbline.methods.sparse.reading import Reading, variances
from plumbline.models.algebra import SparseKernel, inner, product, squared_distances
from plumbline.models.svgp.cross_covariance import JITTER, Covariances, covariances
from plumbline.models.svgp.objective import Forward


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
