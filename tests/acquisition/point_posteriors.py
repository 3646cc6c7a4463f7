"""Sparse processes at random parameters, and what they say of some points."""

from typing import get_args

import torch

from plumbline.acquisition.quadrature import gauss_hermite
from plumbline.methods.sparse.point_posteriors import PointPosteriors
from plumbline.methods.sparse.reading import Reading
from plumbline.methods.sparse.soft_improvement import NODES, SoftBatchImprovement, SoftImprovement
from plumbline.methods.sparse.soft_knowledge_gradient import SoftKnowledgeGradient
from plumbline.methods.sparse.soft_utility import SoftUtility
from plumbline.models.algebra import SparseKernel
from plumbline.models.svgp.cross_covariance import JITTER
from plumbline.models.svgp.objective import Batch, Layout, forward, initial_row

LAYOUT = Layout(6, 2)
KERNELS: list[SparseKernel] = ["rbf", "matern52"]


def uniform(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def normal(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rows_of(b: int, seed: int = 0, layout: Layout = LAYOUT) -> torch.Tensor:
    """Return parameters of `b` processes, off their initial ones."""
    rows = torch.stack([initial_row(uniform(layout.m, layout.d, seed=seed + i)) for i in range(b)])
    rows += 0.3 * normal(b, layout.size, seed=seed + 50)
    layout.parts(rows).raw_lengthscale.sub_(0.7)
    return rows


def sight_of(rows: torch.Tensor, points: torch.Tensor, kernel: SparseKernel) -> PointPosteriors:
    """Return what processes say of `b x k x d` points."""
    return PointPosteriors.of(forward(rows, LAYOUT, points, kernel))


def batch(b: int, n: int = 5, data: float = 40.0, d: int = 2) -> Batch:
    return Batch(uniform(b, n, d, seed=7), normal(b, n, seed=8), torch.full((b,), data, dtype=torch.float64))


def value_of(utility: SoftUtility, rows: torch.Tensor, points: torch.Tensor, kernel: SparseKernel) -> torch.Tensor:
    """Return `E log u` under processes, `b`."""
    return utility.expected_log(sight_of(rows, points, kernel)).value


def correlations(X: torch.Tensor, kernel: SparseKernel) -> torch.Tensor:
    """Return those of points with themselves, by operations that torch differentiates."""
    r2 = (X.unsqueeze(-2) - X.unsqueeze(-3)).square().sum(-1)
    if kernel == "rbf":
        return (-0.5 * r2).exp()
    s = torch.where(r2 > 0, 5 * r2, 1.0).sqrt() * (r2 > 0)
    return (1 + s + 5 * r2 / 3) * (-s).exp()


def expected_log(utility: SoftUtility, kernel: SparseKernel, *leaves: torch.Tensor) -> torch.Tensor:
    """Return `E log u`, `b`, by operations that torch differentiates.

    The leaves are points (`b x k x d`), A, B, constant, lengthscale, outputscale and noise.
    """
    points, A, B, constant, lengthscale, outputscale, noise = leaves
    mean, W = constant[:, None] + B[:, -1], B[:, :-1]
    prior = outputscale[:, None, None] * correlations(points / lengthscale[:, None, None], kernel)
    explained = A.mT @ A
    covariance = prior - explained + W.mT @ W + JITTER * torch.eye(points.shape[1], dtype=torch.float64)
    best, q = utility.best[:, None], utility.q
    sd = covariance.diagonal(dim1=-2, dim2=-1).sqrt()
    if isinstance(utility, SoftImprovement):
        nodes, weights = (torch.from_numpy(part) for part in gauss_hermite(NODES))
        return (logarithms(mean + sd * nodes - best) * weights).sum(-1)
    assert isinstance(utility, SoftBatchImprovement | SoftKnowledgeGradient)
    base, factor = utility.base, torch.linalg.cholesky(covariance[:, :q, :q])
    if isinstance(utility, SoftBatchImprovement):
        return logarithms((mean.unsqueeze(-2) + base @ factor.mT).amax(-1) - best).mean(-1)
    drawn, conditioned = sd[:, None, :q].square(), sd[:, None, :q].square()
    if utility.reading == "noisy":
        drawn = drawn + noise[:, None, None]
    if utility.reading != "noise-free":
        conditioned = conditioned + noise[:, None, None]
    observed = mean[:, None, :q] + drawn.sqrt() * base
    if utility.doubled and q > 1:
        observed = (observed + base @ factor.mT).reshape(len(base), q, -1).mT
    if utility.appended:
        residual = outputscale[:, None] - explained.diagonal(dim1=-2, dim2=-1)[:, :q]
        gain = (prior - explained)[:, q:, :q] / residual[:, None]
    else:
        gain = covariance[:, q:, :q] / conditioned
    shift = 0.0 if utility.centred else constant[:, None, None]
    means = mean[:, q:, None] + gain * (observed - mean[:, None, :q] + shift)
    return logarithms(means.amax(-1) - best).mean(-1)


def logarithms(x: torch.Tensor) -> torch.Tensor:
    """Return log softplus, where neither under- nor overflows."""
    return torch.logaddexp(x, torch.zeros_like(x)).log()


def utilities(b: int) -> dict[str, tuple[SoftUtility, int]]:
    """Return every utility of `b` processes, and how many points it is of."""
    best = 0.3 + 0.1 * torch.arange(b, dtype=torch.float64)
    base = normal(b, 5, 2, seed=20)
    return {
        "improvement": (SoftImprovement(best), 1),
        "batch-improvement": (SoftBatchImprovement(best, 2, base), 2),
        "gradient": (SoftKnowledgeGradient(best, 1, base[..., :1]), 6),
        "batch-gradient": (SoftKnowledgeGradient(best, 2, base), 7),
        "noisy-gradient": (SoftKnowledgeGradient(best, 2, base, "noisy"), 7),
        "shrunk-gradient": (SoftKnowledgeGradient(best, 2, base, "shrunk-twice"), 7),
        "doubled": (SoftKnowledgeGradient(best, 2, base, doubled=True), 7),
        "appended": (SoftKnowledgeGradient(best, 2, base, appended=True), 7),
        "uncentred": (SoftKnowledgeGradient(best, 2, base, centred=False), 7),
    }


NAMES = list(utilities(1))

READINGS: tuple[Reading, ...] = get_args(Reading)


def scalar(value: float) -> torch.Tensor:
    """Return a stack of one number."""
    return torch.tensor([value], dtype=torch.float64)
