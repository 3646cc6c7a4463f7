"""Divergence of a normal distribution from its conditional, given the value or the sign of a correlated variable."""

import torch
from torch import Tensor
from torch.special import log_ndtr, ndtr

from plumbline.acquisition.quadrature import gauss_hermite

NODES = 32
"""Number of nodes of the quadrature over an observation."""

FAR = 5.0
"""Greatest distance, in standard deviations, of a draw's optimum from the mean there: beyond are rounding errors."""

LEAST_SHARE = 1e-12
"""Least share of a variance that conditioning leaves."""


def divergence_of_value(r2: Tensor, away: Tensor) -> Tensor:
    """Return the divergence of a normal distribution, given the value of another variable, from the one before.

    It is `(r^2 (t^2 - 1) - log(1 - r^2)) / 2`.

    Args:
        r2: squared correlations of the two variables.
        away: t, the distance of the value from its mean in standard deviations.
    """
    return (r2 * (away.square() - 1) - torch.log1p(-r2)) / 2


def divergence_of_sign(r2: Tensor, mean: Tensor) -> Tensor:
    """Return the divergence of a normal distribution, given a nonnegative correlated variable, from the one before.

    Let z be the standardised variable, and `pi(z) = Phi((mean + r z) / sqrt(1 - r^2))` the probability that the other
    is at least zero given z. The divergence is `E[pi log pi] / Phi(mean) - log Phi(mean)`. For r^2 up to a half pi is
    smooth, and the quadrature is over z. Beyond, integration by parts gives the mean over a normal w of
    `(log Phi(w) + 1) Phi((mean - sqrt(1 - r^2) w) / r)`.

    Args:
        r2: squared correlations of the two variables.
        mean: mean of the other variable in its standard deviations.
    """
    nodes, weights = (torch.from_numpy(part) for part in gauss_hermite(NODES))
    mean, r2 = mean.unsqueeze(-1), r2.unsqueeze(-1)
    weak, strong = r2.clamp_max(0.5), r2.clamp_min(0.5)
    u = (mean + weak.clamp_min(LEAST_SHARE).sqrt() * nodes) / (1 - weak).sqrt()
    over_z = ndtr(u) * log_ndtr(u)
    over_w = (log_ndtr(nodes) + 1) * ndtr((mean - (1 - strong).clamp_min(LEAST_SHARE).sqrt() * nodes) / strong.sqrt())
    log_chance = log_ndtr(mean.squeeze(-1))
    divergence = (torch.where(r2 > 0.5, over_w, over_z) * weights).sum(-1) / log_chance.exp() - log_chance
    return divergence.clamp_min(0)
