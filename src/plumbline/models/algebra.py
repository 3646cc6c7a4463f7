"""Kernels, squared distances, and the gradient of the Cholesky factor."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from plumbline.core.numbers import Numbers, namespace_of

COINCIDENT = 1e-7
"""Distance in lengthscales below which two points count as one: rounding errors of distances are about as large."""


Kernel = Literal["rbf", "matern12", "matern32", "matern52"]
"""The squared exponential, or Matern-1/2, -3/2 or -5/2."""


SparseKernel = Literal["rbf", "matern52"]
"""The kernels of SVGPs: smooth enough for gradients with respect to inducing points."""


def exponential(x: Numbers) -> Numbers:
    """Return `exp(-x)`."""
    minus = -x
    return namespace_of(x).exp(minus, out=minus)


def root_of(factor: float, r2: Numbers) -> Numbers:
    """Return `sqrt(factor r2)`."""
    multiple = factor * r2
    return namespace_of(r2).sqrt(multiple, out=multiple)


def squared_exponential(r2: Numbers) -> tuple[Numbers, Numbers]:
    """Return the correlation at squared distances `r2`, and its slope `-2 dk/dr2`, which is the same."""
    k = exponential(0.5 * r2)
    return k, k


def matern12(r2: Numbers) -> tuple[Numbers, Numbers]:
    """Return the Matern-1/2 correlation at squared distances `r2`, and its slope `-2 dk/dr2`.

    The correlation has a kink where points coincide, and an infinite slope. We set the slope to zero there, the mean of
    its one-sided derivatives.
    """
    xp = namespace_of(r2)
    r = xp.sqrt(r2)
    k = exponential(r)
    return k, xp.where(r < COINCIDENT, 0.0, k / xp.clip(r, COINCIDENT, None))


def matern32(r2: Numbers) -> tuple[Numbers, Numbers]:
    """Return the Matern-3/2 correlation at squared distances `r2`, and its slope `-2 dk/dr2`."""
    s = root_of(3.0, r2)
    fading = exponential(s)
    return fading * (1 + s), 3.0 * fading


def matern52(r2: Numbers) -> tuple[Numbers, Numbers]:
    """Return the Matern-5/2 correlation at squared distances `r2`, and its slope `-2 dk/dr2`."""
    s = root_of(5.0, r2)
    fading = exponential(s)
    linear = fading * (1 + s)
    return linear + fading * (5.0 / 3 * r2), 5.0 / 3 * linear


CORRELATIONS: dict[Kernel, Callable[[Any], tuple[Any, Any]]] = {
    "rbf": squared_exponential,
    "matern12": matern12,
    "matern32": matern32,
    "matern52": matern52,
}


def product(A: Tensor, B: Tensor) -> Tensor:
    """Return `A B` of `b x n x m` and `b x m x k` matrices.

    A single row or column is summed explicitly. BLAS would choose its routine by the number of matrices, and the last
    digit of a seed's numbers would depend on the seeds that run with it.
    """
    if B.shape[-1] == 1:
        return (A * B.mT).sum(-1, keepdim=True)
    if A.shape[-2] == 1:
        return (A.mT * B).sum(-2, keepdim=True)
    return torch.bmm(A, B)


def add_product(C: Tensor, A: Tensor, B: Tensor, factor: float = 1.0) -> Tensor:
    """Add `factor A B` to `C` in place, as exactly as `product`; `factor` is plus or minus a power of two.

    A single inner column is multiplied first and added afterwards: whether BLAS rounds in between depends on the number
    of matrices too. Multiplication by such factors is exact.
    """
    if 1 in (*A.shape[-2:], B.shape[-1]):
        return C.add_(product(A, B), alpha=factor)
    return C.baddbmm_(A, B, alpha=factor)


def inner(A: Tensor, B: Tensor) -> Tensor:
    """Return the Frobenius inner products of `b x n x k` matrices: `b`."""
    return (A * B).sum((-1, -2))


def squared_norms(A: Tensor) -> Tensor:
    """Return the squared norms of `b x n x d` points: `b x n`."""
    return A.square().sum(-1)


def squared_distances(A: Tensor, B: Tensor, norms: Tensor | None = None) -> Tensor:
    """Return the squared distances of `b x n x d` and `b x k x d` points: `b x n x k`.

    Args:
        A, B: points.
        norms: squared norms of A, `b x n`; None to compute them.
    """
    norms = squared_norms(A) if norms is None else norms
    both = norms.unsqueeze(-1) + (norms if B is A else squared_norms(B)).unsqueeze(-2)
    return add_product(both, A, B.mT, -2.0).clamp_min_(0.0)


def halved(E: Tensor) -> Tensor:
    """Return half of the symmetric matrix that has the lower triangle of `E`, its diagonal halved once more.

    It is the core of reverse-mode differentiation of the Cholesky factor (Murray, 2016).

    Args:
        E: `b x m x m`.
    """
    lower = E.tril()
    symmetric = (lower + lower.mT).mul_(0.5)
    symmetric.diagonal(dim1=-2, dim2=-1).mul_(0.5)
    return symmetric


def cholesky_vjp(factor: Tensor, grad_factor: Tensor) -> Tensor:
    """Return the gradient in a matrix, given the gradient G in its Cholesky factor F: `F^-T halved(F' G) F^-1`.

    It is symmetric: each element and its mirror image count as separate variables. The part of `G` above the diagonal
    is ignored.

    Args:
        factor: F, `b x q x q`.
        grad_factor: G, likewise.
    """
    if factor.shape[-1] == 1:
        return 0.5 * grad_factor / factor
    left = torch.linalg.solve_triangular(factor, halved(product(factor.mT, grad_factor)), upper=False, left=False)
    return torch.linalg.solve_triangular(factor.mT, left, upper=True)


def slope_derivative(r2: Tensor, kernel: Kernel) -> Tensor:
    """Return the derivative of the slope in the squared distance; zero where it is infinite, at coinciding points.

    Second derivatives in the points are finite for Matern-3/2: this one is multiplied by squared differences there.
    """
    if kernel == "rbf":
        return -0.5 * (-0.5 * r2).exp()
    if kernel == "matern52":
        return -25.0 / 6 * (-(5 * r2).sqrt()).exp()
    apart = r2.sqrt().clamp_min(COINCIDENT)
    if kernel == "matern32":
        s = 3**0.5 * apart
        value = -4.5 * (-s).exp() / s
    else:
        value = -0.5 * (1 + apart) * (-apart).exp() / apart**3
    return torch.where(r2.sqrt() < COINCIDENT, 0.0, value)


class _Slope(torch.autograd.Function):
    """Slopes that autograd differentiates, once."""

    @staticmethod
    def forward(ctx: Any, r2: Tensor, slope: Tensor, kernel: Kernel) -> Tensor:
        ctx.save_for_backward(r2)
        ctx.kernel = kernel
        return slope.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (r2,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            raise RuntimeError("a GP's posterior is differentiable twice, not three times")
        return gradient * slope_derivative(r2, ctx.kernel), None, None


class _Correlation(torch.autograd.Function):
    """Correlations that autograd differentiates without NaN where points coincide; the slope is not differentiable."""

    @staticmethod
    def forward(ctx: Any, r2: Tensor, kernel: Kernel) -> tuple[Tensor, Tensor]:
        correlation, slope = CORRELATIONS[kernel](r2)
        slope = slope.clone() if slope is correlation else slope
        ctx.save_for_backward(r2, slope)
        ctx.kernel = kernel
        ctx.mark_non_differentiable(slope)
        return correlation, slope

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, None]:
        r2, slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            slope = _Slope.apply(r2, slope, ctx.kernel)
        return gradient * slope * -0.5, None


def correlations(r2: Tensor, kernel: Kernel) -> tuple[Tensor, Tensor]:
    """Return correlations at squared distances of any shape, and slopes `-2 dk/dr2`.

    Autograd differentiates the correlations twice, and the slopes not at all.
    """
    return _Correlation.apply(r2, kernel) if r2.requires_grad else CORRELATIONS[kernel](r2)
