"""Means and integrals of standard Gaussian functions over intervals, accurate for intervals of almost no length."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.special import erfc

NODES, WEIGHTS = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(32))
"""Nodes and weights of Gauss-Legendre quadrature on [-1, 1]."""

NARROW = 0.01
"""Greatest half length of the intervals whose means are Taylor series. The first omitted term is below 1e-14;
a difference quotient would divide rounding errors by the length."""


def density(t: Tensor) -> Tensor:
    """Return `phi(t)`, the standard Gaussian density."""
    return torch.exp(-0.5 * t.square()) / (2 * torch.pi) ** 0.5


def cdf(t: Tensor) -> Tensor:
    """Return `Phi(t)` to full relative precision, unlike `torch.special.ndtr`, whose left tail is `(1 + erf) / 2`."""
    return 0.5 * erfc(-t / 2**0.5)


def ramp(t: Tensor) -> Tensor:
    """Return `h(t) = t Phi(t) + phi(t) = E [t + Z]+`, the antiderivative of `Phi` that vanishes at minus infinity."""
    return t * cdf(t) + density(t)


def integrated_ramp(t: Tensor) -> Tensor:
    """Return `H(t) = ((t^2 + 1) Phi(t) + t phi(t)) / 2`, the antiderivative of `h` that vanishes at minus infinity."""
    return 0.5 * ((t.square() + 1) * cdf(t) + t * density(t))


def mean_slope(centre: Tensor, reach: Tensor) -> Tensor:
    """Return the mean of `phi'` over `centre -+ reach`."""

    def even() -> tuple[Tensor, ...]:
        t, square, phi = centre, centre.square(), density(centre)
        return -t * phi, (3 - square) * t * phi, (10 * square - square.square() - 15) * t * phi

    return _mean(density, centre, reach, even)


def mean_density(centre: Tensor, reach: Tensor) -> Tensor:
    """Return the mean of `phi` over `centre -+ reach`."""
    # In the left tail, where differences of Phi keep their digits.
    t = -centre.abs()

    def even() -> tuple[Tensor, ...]:
        phi, square = density(t), t.square()
        return phi, (square - 1) * phi, (square.square() - 6 * square + 3) * phi

    return _mean(cdf, t, reach, even)


def mean_cdf(centre: Tensor, reach: Tensor) -> Tensor:
    """Return the mean of `Phi` over `centre -+ reach`."""

    def even() -> tuple[Tensor, ...]:
        phi = density(centre)
        return cdf(centre), -centre * phi, (3 - centre.square()) * centre * phi

    return _mean(ramp, centre, reach, even)


def mean_ramp(centre: Tensor, reach: Tensor) -> Tensor:
    """Return the mean of `h` over `centre -+ reach`."""

    def even() -> tuple[Tensor, ...]:
        phi = density(centre)
        return ramp(centre), phi, (centre.square() - 1) * phi

    return _mean(integrated_ramp, centre, reach, even)


def _mean(
    antiderivative: Callable[[Tensor], Tensor],
    centre: Tensor,
    reach: Tensor,
    even: Callable[[], tuple[Tensor, ...]],
) -> Tensor:
    """Return a mean over `centre -+ reach`; `even` gives the function, its second and fourth derivative at `centre`."""
    wide = reach > NARROW
    everywhere = bool(wide.all())
    safe = reach if everywhere else torch.where(wide, reach, torch.ones_like(reach))
    low, high = antiderivative(torch.stack([centre - safe, centre + safe]))
    quotient = (high - low) / (2 * safe)
    if everywhere:
        return quotient
    # The discarded branch must be finite too: its gradient is multiplied by zero.
    square = torch.where(wide, torch.zeros_like(reach), reach).square()
    parts = even()
    series = parts[0] + square / 6 * parts[1] + square.square() / 120 * parts[2]
    return torch.where(wide, quotient, series)


def widening(low: Tensor, high: Tensor, mean: Tensor, reach: Tensor, second: Tensor, fourth: Tensor) -> Tensor:
    """Return the derivative, in `reach`, of the mean of a function over `centre -+ reach`.

    Args:
        low, high: the function at the ends.
        mean: its mean over the interval.
        reach: half the length of the interval.
        second, fourth: derivatives of the function at the centre, for narrow intervals.
    """
    series = reach / 3 * second + reach**3 / 30 * fourth
    return torch.where(reach > NARROW, ((low + high) / 2 - mean) / reach, series)


def integral(function: Callable[[Tensor], Tensor], low: Tensor, high: Tensor) -> Tensor:
    """Return the integral of a smooth function over `[low, high]`, any shape; its argument has one more dimension."""
    half, middle = (high - low) / 2, (high + low) / 2
    return half * (WEIGHTS * function(middle.unsqueeze(-1) + half.unsqueeze(-1) * NODES)).sum(dim=-1)
