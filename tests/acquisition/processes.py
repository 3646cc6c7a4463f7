"""Gaussian processes made up for tests of acquisition functions."""

import torch
from torch import Tensor

from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned


def made(n: int, d: int, kernel: str, seed: int, noise: float = 0.01) -> GP:
    generator = torch.Generator().manual_seed(seed)
    bounds = torch.stack([-2 * torch.ones(d), 3 * torch.ones(d)]).double()
    X = bounds[0] + 5 * torch.rand(n, d, generator=generator, dtype=torch.float64)
    Y = 70 + 9 * torch.sin(X.sum(-1, keepdim=True))
    lengthscale = 0.2 + torch.rand(d, generator=generator, dtype=torch.float64)
    return conditioned(X, Y, bounds, kernel, Hyperparameters(0.1, X.new_tensor([noise]), 1.4, lengthscale))


def somewhere(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 5 - 2
