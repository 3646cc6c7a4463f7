"""How far a normal law moves where another variable is known, or known to be at least zero."""

import torch
from torch import Tensor
from torch.special import log_ndtr, ndtr

from plumbline.acquisition.quadrature import gauss_hermite

NODES = 32
"""Of the quadrature over an observation."""

FAR = 5.0
"""Deviations that a draw's value at its optimum lies from the mean there, at most: beyond are rounding errors."""

LEAST_SHARE = 1e-12
"""What is left, at least, of a variance."""


def divergence_of_value(r2: Tensor, away: Tensor) -> Tensor:
    """Return the divergence of a normal law, given the value of another variable, from the law before.

    `(r^2 (t^2 - 1) - log(1 - r^2)) / 2`.

    Args:
        r2: squared correlations of the two.
        away: t, how many deviations the value lies from its mean.
    """
    return (r2 * (away.square() - 1) - torch.log1p(-r2)) / 2


def divergence_of_sign(r2: Tensor, mean: Tensor) -> Tensor:
    """Return the divergence of a normal law, given that another variable is at least zero, from the law before.

    With z the one, standardised, and `pi(z) = Phi((mean + r z) / sqrt(1 - r^2))` the other's chance given it, that is
    `E[pi log pi] / Phi(mean) - log Phi(mean)`. The mean is over z where r^2 is at most a half, where pi is smooth in
    it; beyond, integrated by parts, it is over a normal w, of `(log Phi(w) + 1) Phi((mean - sqrt(1 - r^2) w) / r)`.

    Args:
        r2: squared correlations of the two.
        mean: of the other, in its deviations.
    """
    nodes, weights = (torch.from_numpy(part) for part in gauss_hermite(NODES))
    mean, r2 = mean.unsqueeze(-1), r2.unsqueeze(-1)
    weak, strong = r2.clamp_max(0.5), r2.clamp_min(0.5)
    u = (mean + weak.clamp_min(LEAST_SHARE).sqrt() * nodes) / (1 - weak).sqrt()
    over_z = ndtr(u) * log_ndtr(u)
    over_w = (log_ndtr(nodes) + 1) * ndtr((mean - (1 - strong).clamp_min(LEAST_SHARE).sqrt() * nodes) / strong.sqrt())
    log_chance = log_ndtr(mean.squeeze(-1))
    found = (torch.where(r2 > 0.5, over_w, over_z) * weights).sum(-1) / log_chance.exp() - log_chance
    return found.clamp_min(0)
