"""Products and factors of stacks of small matrices, `q` a side, with elementwise forms at q = 1, which are cheaper."""

import torch
from torch import Tensor

LEAST_SQUARE = 1e-30
"""Least variance whose root is taken: smaller ones are rounding errors."""


def times(A: Tensor, S: Tensor) -> Tensor:
    """Return `A S` for a small square `S`, `... x q x q`; elementwise at q = 1, which is cheaper."""
    return A * S if S.shape[-1] == 1 else A @ S


def times_transpose(A: Tensor, S: Tensor) -> Tensor:
    """Return `A S'`, likewise."""
    return A * S if S.shape[-1] == 1 else A @ S.mT


def inner(A: Tensor, B: Tensor) -> Tensor:
    """Return `A' B`, `... x q x q`, of two `... x k x q`; a sum of products at q = 1, which is cheaper."""
    return (A * B).sum(dim=-2, keepdim=True) if B.shape[-1] == 1 else A.mT @ B


def wide_times_narrow(A: Tensor, B: Tensor) -> Tensor:
    """Return `A B` of a `B` with few columns as `(B' A')'`, which BLAS computes in half the time."""
    return (B.mT @ A.mT).mT


def squares(A: Tensor) -> Tensor:
    """Return the sums of squares of the rows of `... x n x q`: `... x n x 1`."""
    return A * A if A.shape[-1] == 1 else A.square().sum(dim=-1, keepdim=True)


def diagonal_minus(number: Tensor, S: Tensor) -> Tensor:
    """Return `number I - S`, `... x q x q`."""
    return number - S if S.shape[-1] == 1 else number * torch.eye(S.shape[-1], dtype=S.dtype) - S


def cholesky(S: Tensor) -> Tensor:
    """Return the lower Cholesky factor of `... x q x q`; a square root at q = 1, which is cheaper."""
    if S.shape[-1] == 1:
        return S.clamp_min(LEAST_SQUARE).sqrt()
    eye = torch.eye(S.shape[-1], dtype=S.dtype)
    return torch.linalg.cholesky(S + 1e-12 * S.diagonal(dim1=-2, dim2=-1).mean(dim=-1)[..., None, None] * eye)


def dual(root: Tensor) -> Tensor:
    """Return `L^-T` of lower triangular `L`, `... x q x q`."""
    if root.shape[-1] == 1:
        return root.reciprocal()
    eye = torch.eye(root.shape[-1], dtype=root.dtype).expand_as(root)
    return torch.linalg.solve_triangular(root, eye, upper=False).mT


def symmetric_times(S: Tensor, x: Tensor) -> Tensor:
    """Return `(S + S') x / 2`, `... x q`, of flattened square matrices, `... x q^2`."""
    if x.shape[-1] == 1:
        return S * x
    S = S.unflatten(-1, (x.shape[-1], x.shape[-1]))
    return 0.5 * ((S + S.mT) @ x.unsqueeze(-1)).squeeze(-1)
