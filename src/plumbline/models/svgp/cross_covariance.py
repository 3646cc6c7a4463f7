"""The whitened cross-covariance of an SVGP, with a hand-written gradient.

The posterior of a whitened SVGP at points `X` is a function of `A = L^-1 K(Z, X)` with `L L' = K(Z, Z)`. Its gradient
costs two triangular solves and three matrix products. Automatic differentiation takes twice the time, mostly overhead
of the kernel's small operations. Quantities of the inducing points alone are computed once for all points `X`.
A leading dimension `b` is the batch of seeds that run together.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from plumbline.models.algebra import (
    CORRELATIONS,
    SparseKernel,
    add_product,
    halved,
    inner,
    product,
    squared_distances,
    squared_norms,
)

JITTER = 1e-6
"""Jitter added to the variance of every inducing value and of every point, as in GPyTorch."""


class Covariances(NamedTuple):
    """Prior covariances between two sets of points, with the slopes and distances that their gradients need.

    Attributes:
        value: `b x n x k`, without jitter.
        slope: `b x n x k`, `-2 dk/dr2` times the outputscale.
        r2: `b x n x k`, squared distances in lengthscales.
    """

    value: Tensor
    slope: Tensor
    r2: Tensor


def covariances(r2: Tensor, outputscale: Tensor, kernel: SparseKernel) -> Covariances:
    """Return covariances at squared distances `r2` (`b x n x k`) for outputscales `b`."""
    value, slope = CORRELATIONS[kernel](r2)
    scale = outputscale[:, None, None]
    # The squared exponential equals its slope: one tensor, which must be scaled once.
    return Covariances(value.mul_(scale), slope if slope is value else slope.mul_(scale), r2)


class Slopes(NamedTuple):
    """Gradients with respect to the inducing points (`b x m x d`), the lengthscale and the outputscale (both `b`)."""

    inducing: Tensor
    lengthscale: Tensor
    outputscale: Tensor


@dataclass(frozen=True)
class Inducing:
    """Inducing points `Z` with `L L' = K(Z, Z)`: the part of whitening that does not depend on other points.

    Attributes:
        kernel: kernel of unit variance and lengthscale.
        scaled: `b x m x d`, `Z` in lengthscales.
        norms: `b x m`, squared norms of `scaled`.
        covariances: `b x m x m`, prior covariances of `Z`.
        L: `b x m x m`, lower triangular, with jitter.
        frozen: whether L is of earlier parameters, and does not change with `Z` and the scales.
        lengthscale, outputscale: `b`.
        broken: `b` booleans, whether `K(Z, Z)` has no Cholesky factor, and the other fields are meaningless.
    """

    kernel: SparseKernel
    scaled: Tensor
    norms: Tensor
    covariances: Covariances
    L: Tensor
    frozen: bool
    lengthscale: Tensor
    outputscale: Tensor
    broken: Tensor

    @cached_property
    def inverse(self) -> Tensor:
        """Reciprocal of the lengthscale, `b x 1 x 1`."""
        return self.lengthscale.reciprocal()[:, None, None]

    def whiten(self, X: Tensor) -> "Whitened":
        """Return the whitened cross-covariance with points `X`, `b x n x d`."""
        scaled = X * self.inverse
        r2 = squared_distances(self.scaled, scaled, self.norms)
        across = covariances(r2, self.outputscale, self.kernel)
        A = torch.linalg.solve_triangular(self.L, across.value, upper=False)
        return Whitened(self, A, scaled, across)


def factorise(
    Z: Tensor, lengthscale: Tensor, outputscale: Tensor, kernel: SparseKernel, frozen: Tensor | None = None
) -> Inducing:
    """Return inducing points with the Cholesky factor of their covariance.

    Args:
        Z: `b x m x d`.
        lengthscale: `b`, shared by all inputs.
        outputscale: `b`.
        kernel: kernel of unit variance and lengthscale.
        frozen: `b x m x m`, the factor of earlier parameters where it takes the place of the current one.
    """
    scaled = Z * lengthscale.reciprocal()[:, None, None]
    norms = squared_norms(scaled)
    among = covariances(squared_distances(scaled, scaled, norms), outputscale, kernel)
    jittered = among.value.clone()
    jittered.diagonal(dim1=-2, dim2=-1).add_(JITTER)
    L, info = torch.linalg.cholesky_ex(jittered)
    L = L if frozen is None else frozen
    return Inducing(kernel, scaled, norms, among, L, frozen is not None, lengthscale, outputscale, info != 0)


@dataclass(frozen=True)
class Whitened:
    """The whitened cross-covariance `A = L^-1 K(Z, X)`, with its vector-Jacobian products.

    Attributes:
        inducing: `Z` and `L`.
        A: `b x m x n`.
        scaled: `b x n x d`, `X` in lengthscales.
        covariances: `b x m x n`, of `Z` with `X`.
    """

    inducing: Inducing
    A: Tensor
    scaled: Tensor
    covariances: Covariances

    def vjp(self, grad_A: Tensor) -> Slopes:
        """Return the gradient of `sum(grad_A * A)` in inducing points, lengthscale and outputscale.

        With `E = grad_A A'` the derivative in `K(Z, Z)` is `-L^-T halved(E) L^-1`: reverse-mode differentiation of the
        Cholesky factor, where one triangular product cancels. A frozen factor has no derivative.

        Args:
            grad_A: `b x m x n`.
        """
        Z, m = self.inducing, self.A.shape[-2]
        grad_factor = torch.zeros_like(Z.L) if Z.frozen else halved(torch.bmm(grad_A, self.A.mT)).neg_()
        left = torch.linalg.solve_triangular(Z.L, grad_factor, upper=False, left=False)
        grad_covariance = torch.linalg.solve_triangular(Z.L.mT, torch.cat([left, grad_A], -1), upper=True)
        # The first part is symmetric, and its transpose has the memory layout of the covariances.
        among, across = grad_covariance[..., :m].mT, grad_covariance[..., m:]
        grad_outputscale = inner(among, Z.covariances.value) + inner(across, self.covariances.value)
        among.mul_(Z.covariances.slope)
        across.mul_(self.covariances.slope)
        grad_lengthscale = inner(among, Z.covariances.r2) + inner(across, self.covariances.r2)
        # Each inducing point is in a row and in a column of the symmetric covariance, hence twice.
        among.mul_(2.0)
        grad_inducing = add_product(product(among, Z.scaled), across, self.scaled)
        grad_inducing.addcmul_((among.sum(-1) + across.sum(-1)).unsqueeze(-1), Z.scaled, value=-1)
        return Slopes(
            grad_inducing.mul_(Z.inverse),
            grad_lengthscale / Z.lengthscale,
            grad_outputscale / Z.outputscale,
        )

    def vjp_to_points(self, grad_A: Tensor) -> Tensor:
        """Return the gradient of `sum(grad_A * A)` in the points, `b x n x d`, by one triangular solve."""
        Z = self.inducing
        H = torch.linalg.solve_triangular(Z.L.mT, grad_A, upper=True).mul_(self.covariances.slope)
        down = product(H.mT, Z.scaled)
        return down.addcmul_(H.sum(-2).unsqueeze(-1), self.scaled, value=-1).mul_(Z.inverse)
