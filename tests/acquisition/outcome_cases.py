"""Three processes at fixed hyperparameters: an objective, an inequality and an equality."""

import torch
from torch import Tensor

from plumbline.core.outcomes import Role
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned

ROLES: list[Role] = ["objective", "at_least_zero", "zero"]


def somewhere(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 5 - 2


def made(n: int, d: int, seed: int = 0, shift: float = 0.0) -> list[GP]:
    """Return an objective around 20, and an inequality and an equality that hold here and there."""
    bounds = torch.stack([-2 * torch.ones(d), 3 * torch.ones(d)]).double()
    X, processes = somewhere(n, d, seed=seed), []
    for i in range(3):
        y = 20.0 * (i == 0) + shift * (i > 0) + (1 + 4 * i) * torch.sin(X.sum(-1, keepdim=True) + 2 * i)
        at = Hyperparameters(0.1, X.new_tensor([0.01]), 1.4, 0.3 + 0.2 * somewhere(d, seed=seed + i).abs())
        processes.append(conditioned(X, y, bounds, "matern52", at))
    return processes
