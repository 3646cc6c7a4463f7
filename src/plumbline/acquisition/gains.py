"""Utilities of batches of points whose `f` is known, with their gradients by hand.

Each maps `f`, `b x k x q x m` with one outcome, and the posterior mean, `b x 1 x q x m`, to `b x k`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.pull_back import PullBack


@dataclass(frozen=True)
class Improvement:
    """What the best of a batch gains over `best`, a number or one a draw (`k`)."""

    best: Tensor

    def __call__(self, f: Tensor, mean: Tensor) -> Tensor:
        """Return `max(max_q f - best, 0)`."""
        return self.with_pull_back(f, mean)[0]

    def with_pull_back(self, f: Tensor, mean: Tensor) -> tuple[Tensor, PullBack]:
        """Return the gain, and what pulls gradients back to the best point's `f`, and to the mean: none."""
        top, pull_top = greatest(f)
        gain = (top - self.best).clamp_min(0.0)
        return gain, lambda to_gain: (pull_top(to_gain * (gain > 0)), torch.zeros_like(mean))


@dataclass(frozen=True)
class UpperBound:
    """The bound of a batch reparameterised as by Wilson et al. (2017): `max_q mean + |mean - f|`."""

    def __call__(self, f: Tensor, mean: Tensor) -> Tensor:
        """Return the bound."""
        return self.with_pull_back(f, mean)[0]

    def with_pull_back(self, f: Tensor, mean: Tensor) -> tuple[Tensor, PullBack]:
        """Return the bound, and what pulls gradients back: to `f` by `sign(f - mean)`, the rest to the mean."""
        away = f - mean
        top, pull_top = greatest(mean + away.abs())

        def pull_back(to_bound: Tensor) -> tuple[Tensor, Tensor]:
            to_height = pull_top(to_bound)
            to_f = to_height * away.sign()
            return to_f, (to_height - to_f).sum(dim=1, keepdim=True)

        return top, pull_back


def greatest(f: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return the greatest of a batch, `b x k x q x 1` to `b x k`, and what pulls gradients back to where it is."""
    if f.shape[-2] == 1:
        return f.flatten(start_dim=1), lambda to_top: to_top.view(f.shape)
    top, where = f.squeeze(-1).max(dim=-1)

    def pull_back(to_top: Tensor) -> Tensor:
        return torch.zeros_like(f).scatter_(-2, where[..., None, None], to_top[..., None, None])

    return top, pull_back
