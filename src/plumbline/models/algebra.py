"""Kernels, squared distances, and the derivative of the Cholesky factor."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

COINCIDENT = 1e-7
"""Distance in lengthscales below which points are the same: distances have rounding errors of about that size."""


Kernel = Literal["rbf", "matern12", "matern32", "matern52"]
"""The squared exponential, or Matern-1/2, -3/2 or -5/2."""


SparseKernel = Literal["rbf", "matern52"]
"""The kernels of sparse processes, which are smooth enough for gradients in inducing points."""


def squared_exponential(r2: Tensor) -> tuple[Tensor, Tensor]:
    """Return the correlation at squared distances `r2`, and its slope `-2 dk/dr2`; both are the same here."""
    k = r2.mul(-0.5).exp_()
    return k, k


def matern12(r2: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Matern-1/2 correlation at squared distances `r2`, and its slope `-2 dk/dr2`.

    The correlation has a kink where points coincide: its slope is infinite there, and said to be zero, the mean of what
    it is on both sides.
    """
    r = r2.sqrt()
    k = r.neg().exp_()
    return k, (k / r).masked_fill_(r < COINCIDENT, 0.0)


def matern32(r2: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Matern-3/2 correlation at squared distances `r2`, and its slope `-2 dk/dr2`."""
    s = r2.mul(3.0).sqrt_()
    fading = s.neg().exp_()
    return fading * (1 + s), fading.mul(3.0)


def matern52(r2: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Matern-5/2 correlation at squared distances `r2`, and its slope `-2 dk/dr2`."""
    s = r2.mul(5.0).sqrt_()
    fading = s.neg().exp_()
    linear = fading * (1 + s)
    return linear + fading * r2.mul(5.0 / 3), linear.mul(5.0 / 3)


CORRELATIONS: dict[Kernel, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
    "rbf": squared_exponential,
    "matern12": matern12,
    "matern32": matern32,
    "matern52": matern52,
}


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


def add_product(C: Tensor, A: Tensor, B: Tensor, factor: float = 1.0) -> Tensor:
    """Add `factor A B` to `C` in place, with the care of `product`; `factor` is a power of two, or minus one.

    A single inner column is multiplied first and added then: whether BLAS rounds in between depends on the number of
    matrices too. By such factors multiplication is exact.
    """
    if 1 in (*A.shape[-2:], B.shape[-1]):
        return C.add_(product(A, B), alpha=factor)
    return C.baddbmm_(A, B, alpha=factor)


def inner(A: Tensor, B: Tensor) -> Tensor:
    """Return the sums of the products of elements of `b x n x k` matrices: `b`."""
    return (A * B).sum((-1, -2))


def squared_norms(A: Tensor) -> Tensor:
    """Return the squared norms of `b x n x d` points: `b x n`."""
    return A.square().sum(-1)


def squared_distances(A: Tensor, B: Tensor, norms: Tensor | None = None) -> Tensor:
    """Return the squared distances of `b x n x d` and `b x k x d` points: `b x n x k`.

    Args:
        A, B: points.
        norms: squared norms of A where they are known, `b x n`.
    """
    norms = squared_norms(A) if norms is None else norms
    both = norms.unsqueeze(-1) + (norms if B is A else squared_norms(B)).unsqueeze(-2)
    return add_product(both, A, B.mT, -2.0).clamp_min_(0.0)


def halved(E: Tensor) -> Tensor:
    """Return half of the symmetric matrix that has the lower triangle of `E`, its diagonal halved once more.

    The heart of the reverse rule of the Cholesky factor (Murray, 2016).

    Args:
        E: `b x m x m`.
    """
    lower = E.tril()
    found = (lower + lower.mT).mul_(0.5)
    found.diagonal(dim1=-2, dim2=-1).mul_(0.5)
    return found


def cholesky_vjp(factor: Tensor, grad_factor: Tensor) -> Tensor:
    """Return the gradient in a matrix of what has a gradient in its Cholesky factor F: `F^-T halved(F' G) F^-1`.

    It is symmetric: each element and its mirror image count as variables of their own. What `G` has above the diagonal
    makes no difference.

    Args:
        factor: F, `b x q x q`.
        to_factor: G, likewise.
    """
    if factor.shape[-1] == 1:
        return 0.5 * grad_factor / factor
    left = torch.linalg.solve_triangular(factor, halved(product(factor.mT, grad_factor)), upper=False, left=False)
    return torch.linalg.solve_triangular(factor.mT, left, upper=True)


class _Correlation(torch.autograd.Function):
    """Smooth for automatic differentiation where points coincide; the slope has no derivative of its own."""

    @staticmethod
    def forward(ctx: Any, r2: Tensor, kernel: Kernel) -> tuple[Tensor, Tensor]:
        correlation, slope = CORRELATIONS[kernel](r2)
        slope = slope.clone() if slope is correlation else slope
        ctx.save_for_backward(slope)
        ctx.mark_non_differentiable(slope)
        return correlation, slope

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, None]:
        (slope,) = ctx.saved_tensors
        return gradient * slope * -0.5, None


def correlations(r2: Tensor, kernel: Kernel) -> tuple[Tensor, Tensor]:
    """Return correlations at squared distances of any shape, and slopes `-2 dk/dr2`; may be differentiated once."""
    return _Correlation.apply(r2, kernel) if r2.requires_grad else CORRELATIONS[kernel](r2)
