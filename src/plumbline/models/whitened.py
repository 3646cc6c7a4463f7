"""The whitened cross-covariance of a sparse process, and its gradient by hand.

Everything that a whitened sparse process says of points `X` is a function of `A = L^-1 K(Z, X)` with `L L' = K(Z, Z)`.
Its gradient costs two triangular solves and three matrix products; automatic differentiation takes twice the time,
most of it around the small operations of the kernel. A leading dimension `b` is that of seeds that run together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

JITTER = 1e-6
"""Added to the variance of every inducing value and of every point, as GPyTorch does."""

SparseKernel = Literal["rbf", "matern52"]
"""The squared exponential, or Matern-5/2."""


def squared_exponential(r2: Tensor) -> tuple[Tensor, Tensor]:
    """Return the correlation at squared distances `r2`, and its slope `-2 dk/dr2`; both are the same here."""
    k = r2.mul(-0.5).exp_()
    return k, k


def matern52(r2: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Matern-5/2 correlation at squared distances `r2`, and its slope `-2 dk/dr2`."""
    s = r2.mul(5.0).sqrt_()
    fading = s.neg().exp_()
    linear = fading * (1 + s)
    return linear + fading * r2.mul(5.0 / 3), linear.mul(5.0 / 3)


CORRELATIONS: dict[SparseKernel, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
    "rbf": squared_exponential,
    "matern52": matern52,
}


def squared_distances(A: Tensor, B: Tensor) -> Tensor:
    """Return the squared distances of `b x n x d` and `b x k x d` points: `b x n x k`."""
    norms = A.square().sum(-1).unsqueeze(-1) + B.square().sum(-1).unsqueeze(-2)
    return torch.baddbmm(norms, A, B.mT, alpha=-2).clamp_min_(0.0)


def product(A: Tensor, B: Tensor) -> Tensor:
    """Return `A B` of `b x n x m` and `b x m x k` matrices.

    A single row or column is summed by hand: BLAS would choose a routine by the number of matrices, and what becomes of
    a seed would depend, in its last digit, on which others run with it.
    """
    if B.shape[-1] == 1:
        return (A * B.mT).sum(-1, keepdim=True)
    if A.shape[-2] == 1:
        return (A.mT * B).sum(-2, keepdim=True)
    return torch.bmm(A, B)


def pull_back_factor(L: Tensor, to_L: Tensor) -> Tensor:
    """Return the gradient in a covariance of a function of its Cholesky factor: `b x q x q`, symmetric.

    It is `L^-T P L^-1`, where P is half of the symmetric matrix with the lower triangle of `L' to_L` (Murray, 2016).

    Args:
        L: `b x q x q`, the factor.
        to_L: `b x q x q`, the derivatives in it; what is above the diagonal does not count.
    """
    lower = torch.bmm(L.mT, to_L.tril()).tril_()
    P = (lower + lower.mT).mul_(0.5)
    P.diagonal(dim1=-2, dim2=-1).mul_(0.5)
    left = torch.linalg.solve_triangular(L.mT, P, upper=True)
    return torch.linalg.solve_triangular(L, left, upper=False, left=False)


class Slopes(NamedTuple):
    """Gradients with respect to the inducing points (`b x m x d`), the points (`b x n x d`), the lengthscale and the
    outputscale (both `b`)."""

    inducing: Tensor
    points: Tensor
    lengthscale: Tensor
    outputscale: Tensor


@dataclass(frozen=True)
class Whitened:
    """`A = L^-1 K(Z, X)`, with what its gradient needs.

    Attributes:
        A: `b x m x n`.
        L: `b x m x m`, lower triangular, of `K(Z, Z)` with jitter.
        scaled: `b x (m + n) x d`, inducing points and points in lengthscales.
        covariance: `b x m x (m + n)`, of the inducing points with all of them, without jitter.
        slope: likewise, `-2 dk/dr2` times the outputscale.
        lengthscale, outputscale: `b`.
        broken: `b` booleans, whether `K(Z, Z)` has no Cholesky factor; all else of such a process means nothing.
    """

    A: Tensor
    L: Tensor
    scaled: Tensor
    covariance: Tensor
    slope: Tensor
    lengthscale: Tensor
    outputscale: Tensor
    broken: Tensor

    def pull_back(self, to_A: Tensor) -> Slopes:
        """Return the gradient of `sum(to_A * A)`.

        With `E = to_A A'` the derivative in `K(Z, Z)` is `L^-T P L^-1`, where `P` is minus half of the symmetric matrix
        that has the lower triangle of `E`: the reverse rule of the Cholesky factor (Murray, 2016), one of whose
        triangular products cancels here.

        Args:
            to_A: `b x m x n`.
        """
        m = self.A.shape[-2]
        lower = torch.bmm(to_A, self.A.mT).tril_()
        P = (lower + lower.mT).mul_(-0.5)
        P.diagonal(dim1=-2, dim2=-1).mul_(0.5)
        left = torch.linalg.solve_triangular(self.L, P, upper=False, left=False)
        to_covariance = torch.linalg.solve_triangular(self.L.mT, torch.cat([left, to_A], -1), upper=True)
        to_outputscale = (to_covariance * self.covariance).sum((-1, -2)) / self.outputscale
        H = to_covariance.mul_(self.slope)
        # A column of ones gives the sums of rows and columns in the same products.
        ones = torch.cat([self.scaled, self.scaled.new_ones(()).expand(*self.scaled.shape[:-1], 1)], -1)
        across, down = torch.bmm(H, ones), torch.bmm(H.mT, ones[..., :m, :])
        to_scaled = torch.addcmul(down[..., :-1], down[..., -1:], self.scaled, value=-1)
        to_scaled[..., :m, :] += torch.addcmul(across[..., :-1], across[..., -1:], self.scaled[..., :m, :], value=-1)
        inverse = self.lengthscale.reciprocal()
        to_lengthscale = -(to_scaled * self.scaled).sum((-1, -2)) * inverse
        to_inputs = to_scaled.mul_(inverse[:, None, None])
        return Slopes(to_inputs[..., :m, :], to_inputs[..., m:, :], to_lengthscale, to_outputscale)

    def pull_back_to_points(self, to_A: Tensor) -> Tensor:
        """Return the gradient of `sum(to_A * A)` in the points alone, `b x n x d`: one triangular solve."""
        m = self.A.shape[-2]
        H = torch.linalg.solve_triangular(self.L.mT, to_A, upper=True).mul_(self.slope[..., m:])
        Z, X = self.scaled[..., :m, :], self.scaled[..., m:, :]
        down = product(H.mT, Z)
        return down.addcmul_(H.sum(-2).unsqueeze(-1), X, value=-1) / self.lengthscale[:, None, None]


class Correlation(torch.autograd.Function):
    """Correlations at squared distances, smooth for automatic differentiation where points coincide."""

    @staticmethod
    def forward(ctx: Any, r2: Tensor, kernel: SparseKernel) -> Tensor:
        """Return the correlations at `r2`, of any shape."""
        correlation, slope = CORRELATIONS[kernel](r2)
        ctx.save_for_backward(slope)
        return correlation

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Return the gradient in `r2`."""
        (slope,) = ctx.saved_tensors
        return gradient * slope * -0.5, None


def whiten(Z: Tensor, X: Tensor, lengthscale: Tensor, outputscale: Tensor, kernel: SparseKernel) -> Whitened:
    """Return the whitened cross-covariance of inducing points `Z` with points `X`.

    Args:
        Z: `b x m x d`.
        X: `b x n x d`.
        lengthscale: `b`, of all inputs.
        outputscale: `b`.
        kernel: of unit variance and lengthscale.
    """
    m = Z.shape[-2]
    scaled = torch.cat([Z, X], -2) / lengthscale[:, None, None]
    correlation, steepness = CORRELATIONS[kernel](squared_distances(scaled[..., :m, :], scaled))
    scale = outputscale[:, None, None]
    covariance = correlation * scale
    slope = covariance if steepness is correlation else steepness * scale
    among = covariance[..., :m].clone()
    among.diagonal(dim1=-2, dim2=-1).add_(JITTER)
    L, info = torch.linalg.cholesky_ex(among)
    A = torch.linalg.solve_triangular(L, covariance[..., m:], upper=False)
    return Whitened(A, L, scaled, covariance, slope, lengthscale, outputscale, info != 0)
