"""Data and processes that exact processes are tested on."""

import torch
from torch import Tensor

from plumbline.models.gp.fit import ModelOptions
from plumbline.models.gp.likelihood import DataSets, Hyperparameters
from plumbline.models.gp.process import GP, conditioned

BOUNDS = torch.tensor([[-3.0, 100.0], [5.0, 300.0]], dtype=torch.float64)
CHOICES = [
    ModelOptions(kernel=kernel, priors=priors, ard=ard)
    for kernel in ("matern52", "rbf")
    for priors in ("botorch", "botorch-0.9", "conformal", "none")
    for ard in (True, False)
    if ard or priors != "botorch"
]


def uniform(*shape: int, seed: int = 0) -> Tensor:
    U = torch.rand(*shape, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * U


def data(n: int = 9) -> tuple[Tensor, Tensor]:
    X = uniform(n)
    U = (X - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])
    return X, 1000.0 + 50.0 * torch.sin(6 * U[:, :1]) + 20.0 * U[:, 1:]


def standardised(n: int, d: int, *seeds: int) -> DataSets:
    """Standardised observations of something smooth, with noise; a data set a seed."""
    X, y = zip(*(_observed(n, d, seed) for seed in seeds or (0,)), strict=True)
    return DataSets(torch.stack(X).numpy(), torch.stack(y).numpy())


def _observed(n: int, d: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, d, generator=generator, dtype=torch.float64)
    y = torch.sin(4 * X[:, 0]) + X.square().mean(-1) + 0.1 * torch.randn(n, generator=generator, dtype=torch.float64)
    return X, (y - y.mean()) / y.std() if n > 1 else y - y.mean()


def made(kernel: str = "matern52", known: bool = False, lengthscales: int = 2, n: int = 9) -> GP:
    noise = torch.linspace(0.01, 0.2, n if known else 1, dtype=torch.float64)
    lengthscale = torch.linspace(0.3, 0.6, lengthscales, dtype=torch.float64)
    return conditioned(*data(n), BOUNDS, kernel, Hyperparameters(0.2, noise, 1.7, lengthscale))


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
