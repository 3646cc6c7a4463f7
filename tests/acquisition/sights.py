"""Sparse processes at random parameters, and what they say of some points."""

import torch

from plumbline.acquisition.soft_utility import (
    Sight,
    SoftBatchImprovement,
    SoftImprovement,
    SoftKnowledgeGradient,
    SoftUtility,
)
from plumbline.models.sparse import Batch, Layout, forward, initial_row
from plumbline.models.whitened import SparseKernel

LAYOUT = Layout(6, 2)
KERNELS: list[SparseKernel] = ["rbf", "matern52"]


def uniform(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def normal(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rows_of(b: int, seed: int = 0) -> torch.Tensor:
    """Return parameters of `b` processes, off their initial ones."""
    rows = torch.stack([initial_row(uniform(LAYOUT.m, LAYOUT.d, seed=seed + i)) for i in range(b)])
    rows += 0.3 * normal(b, LAYOUT.size, seed=seed + 50)
    LAYOUT.parts(rows).raw_lengthscale.sub_(0.7)
    return rows


def sight_of(rows: torch.Tensor, points: torch.Tensor, kernel: SparseKernel) -> Sight:
    """Return what processes say of `b x k x d` points."""
    passed = forward(rows, LAYOUT, points, kernel)
    parts = passed.parameters
    return Sight(kernel, points, passed.whitened.A, passed.B, parts.constant, parts.lengthscale, parts.outputscale)


def batch(b: int, n: int = 5, data: float = 40.0) -> Batch:
    return Batch(uniform(b, n, 2, seed=7), normal(b, n, seed=8), torch.full((b,), data, dtype=torch.float64))


def utilities(b: int) -> dict[str, tuple[SoftUtility, int]]:
    """Return every utility of `b` processes, and how many points it is of."""
    best = 0.3 + 0.1 * torch.arange(b, dtype=torch.float64)
    base = normal(b, 5, 2, seed=20)
    return {
        "improvement": (SoftImprovement(best), 1),
        "batch-improvement": (SoftBatchImprovement(best, 2, base), 2),
        "gradient": (SoftKnowledgeGradient(best, 1, base[..., :1]), 6),
        "batch-gradient": (SoftKnowledgeGradient(best, 2, base), 7),
        "doubled": (SoftKnowledgeGradient(best, 2, base, doubled=True), 7),
        "uncentred": (SoftKnowledgeGradient(best, 2, base, centred=False), 7),
    }


NAMES = list(utilities(1))
