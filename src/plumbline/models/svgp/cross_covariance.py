"""The whitened cross-covariance of a sparse process, and its gradient by hand.

Everything that a whitened sparse process says of points `X` is a function of `A = L^-1 K(Z, X)` with `L L' = K(Z, Z)`.
Its gradient costs two triangular solves and three matrix products; automatic differentiation takes twice the time,
most of it around the small operations of the kernel. What depends on the inducing points alone is computed once for all
points that are asked for. A leading dimension `b` is that of seeds that run together.
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
"""Added to the variance of every inducing value and of every point, as GPyTorch does."""


class Covariances(NamedTuple):
    """Prior covariances of some points with others, and what their gradients need.

    Attributes:
        value: `b x n x k`, without jitter.
        slope: likewise, `-2 dk/dr2` times the outputscale.
        r2: likewise, squared distances in lengthscales.
    """

    value: Tensor
    slope: Tensor
    r2: Tensor


def covariances(r2: Tensor, outputscale: Tensor, kernel: SparseKernel) -> Covariances:
    """Return covariances at squared distances `r2` (`b x n x k`) of processes with outputscales `b`."""
    value, slope = CORRELATIONS[kernel](r2)
    scale = outputscale[:, None, None]
    # The squared exponential is its own slope: one tensor, scaled once.
    return Covariances(value.mul_(scale), slope if slope is value else slope.mul_(scale), r2)


class Slopes(NamedTuple):
    """Gradients with respect to the inducing points (`b x m x d`), the lengthscale and the outputscale (both `b`)."""

    inducing: Tensor
    lengthscale: Tensor
    outputscale: Tensor


@dataclass(frozen=True)
class Inducing:
    """Inducing points `Z` with `L L' = K(Z, Z)`: what whitening needs that does not depend on other points.

    Attributes:
        kernel: of unit variance and lengthscale.
        scaled: `b x m x d`, `Z` in lengthscales.
        norms: `b x m`, its squared norms.
        covariances: `b x m x m`, of `Z`.
        L: `b x m x m`, lower triangular, with jitter.
        lengthscale, outputscale: `b`.
        broken: `b` booleans, whether `K(Z, Z)` has no Cholesky factor; all else of such a process means nothing.
    """

    kernel: SparseKernel
    scaled: Tensor
    norms: Tensor
    covariances: Covariances
    L: Tensor
    lengthscale: Tensor
    outputscale: Tensor
    broken: Tensor

    @cached_property
    def inverse(self) -> Tensor:
        """One over the lengthscale, `b x 1 x 1`."""
        return self.lengthscale.reciprocal()[:, None, None]

    def whiten(self, X: Tensor) -> "Whitened":
        """Return the whitened cross-covariance with points `X`, `b x n x d`."""
        scaled = X * self.inverse
        r2 = squared_distances(self.scaled, scaled, self.norms)
        found = covariances(r2, self.outputscale, self.kernel)
        A = torch.linalg.solve_triangular(self.L, found.value, upper=False)
        return Whitened(self, A, scaled, found)


def factorise(Z: Tensor, lengthscale: Tensor, outputscale: Tensor, kernel: SparseKernel) -> Inducing:
    """Return inducing points with the factor that whitens them.

    Args:
        Z: `b x m x d`.
        lengthscale: `b`, of all inputs.
        outputscale: `b`.
        kernel: of unit variance and lengthscale.
    """
    scaled = Z * lengthscale.reciprocal()[:, None, None]
    norms = squared_norms(scaled)
    among = covariances(squared_distances(scaled, scaled, norms), outputscale, kernel)
    jittered = among.value.clone()
    jittered.diagonal(dim1=-2, dim2=-1).add_(JITTER)
    L, info = torch.linalg.cholesky_ex(jittered)
    return Inducing(kernel, scaled, norms, among, L, lengthscale, outputscale, info != 0)


@dataclass(frozen=True)
class Whitened:
    """`A = L^-1 K(Z, X)`, with what its gradient needs.

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
        """Return the gradient of `sum(to_A * A)` in all but the points.

        With `E = to_A A'` the derivative in `K(Z, Z)` is `-L^-T halved(E) L^-1`: the reverse rule of the Cholesky
        factor, one of whose triangular products cancels here.

        Args:
            to_A: `b x m x n`.
        """
        Z, m = self.inducing, self.A.shape[-2]
        left = torch.linalg.solve_triangular(Z.L, halved(torch.bmm(grad_A, self.A.mT)).neg_(), upper=False, left=False)
        grad_covariance = torch.linalg.solve_triangular(Z.L.mT, torch.cat([left, grad_A], -1), upper=True)
        # The first part is symmetric, and its transpose lies in memory as the covariances do.
        among, across = grad_covariance[..., :m].mT, grad_covariance[..., m:]
        grad_outputscale = inner(among, Z.covariances.value) + inner(across, self.covariances.value)
        among.mul_(Z.covariances.slope)
        across.mul_(self.covariances.slope)
        grad_lengthscale = inner(among, Z.covariances.r2) + inner(across, self.covariances.r2)
        # Each inducing point is once a row and once a column of their symmetric covariances.
        among.mul_(2.0)
        grad_inducing = add_product(product(among, Z.scaled), across, self.scaled)
        grad_inducing.addcmul_((among.sum(-1) + across.sum(-1)).unsqueeze(-1), Z.scaled, value=-1)
        return Slopes(
            grad_inducing.mul_(Z.inverse),
            grad_lengthscale / Z.lengthscale,
            grad_outputscale / Z.outputscale,
        )

    def vjp_to_points(self, grad_A: Tensor) -> Tensor:
        """Return the gradient of `sum(to_A * A)` in the points, `b x n x d`: one triangular solve."""
        Z = self.inducing
        H = torch.linalg.solve_triangular(Z.L.mT, grad_A, upper=True).mul_(self.covariances.slope)
        down = product(H.mT, Z.scaled)
        return down.addcmul_(H.sum(-2).unsqueeze(-1), self.scaled, value=-1).mul_(Z.inverse)
