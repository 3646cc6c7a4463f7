"""Means and integrals of standard Gaussian functions over intervals, accurate for intervals of almost no length.

The numbers are tensors, or arrays as in searches.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from plumbline.core.numbers import Numbers, namespace_of

NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)
"""Nodes and weights of Gauss-Legendre quadrature on [-1, 1]."""

NARROW = 0.01
"""Greatest half length of the intervals whose means are Taylor series. The first omitted term is below 1e-14;
a difference quotient would divide rounding errors by the length."""

SQRT_2, SQRT_2PI = 2**0.5, (2 * np.pi) ** 0.5


def density(t: Numbers) -> Numbers:
    """Return `phi(t)`, the standard Gaussian density."""
    xp = namespace_of(t)
    return xp.exp(-0.5 * xp.square(t)) / SQRT_2PI


def erfc(x: Numbers) -> Numbers:
    """Return the complementary error function; of arrays too by PyTorch, in half of SciPy's time."""
    return torch.special.erfc(x) if isinstance(x, Tensor) else torch.special.erfc(torch.as_tensor(x)).numpy()


def cdf(t: Numbers) -> Numbers:
    """Return `Phi(t)` to full relative precision, unlike `torch.special.ndtr`, whose left tail is `(1 + erf) / 2`."""
    return 0.5 * erfc(-t / SQRT_2)


def ramp(t: Numbers) -> Numbers:
    """Return `h(t) = t Phi(t) + phi(t) = E [t + Z]+`, the antiderivative of `Phi` that vanishes at minus infinity."""
    # Near t = -38 both terms are subnormal, and their sum may be of the wrong sign.
    return namespace_of(t).clip(t * cdf(t) + density(t), 0.0, None)


def integrated_ramp(t: Numbers) -> Numbers:
    """Return `H(t) = ((t^2 + 1) Phi(t) + t phi(t)) / 2`, the antiderivative of `h` that vanishes at minus infinity."""
    return 0.5 * ((t * t + 1) * cdf(t) + t * density(t))


def mean_slope(centre: Numbers, reach: Numbers) -> Numbers:
    """Return the mean of `phi'` over `centre -+ reach`."""

    def even() -> tuple[Numbers, ...]:
        t, square, phi = centre, centre * centre, density(centre)
        return -t * phi, (3 - square) * t * phi, (10 * square - square * square - 15) * t * phi

    return _mean(density, centre, reach, even)


def mean_density(centre: Numbers, reach: Numbers) -> Numbers:
    """Return the mean of `phi` over `centre -+ reach`."""
    # In the left tail, where differences of Phi keep their digits.
    t = -abs(centre)

    def even() -> tuple[Numbers, ...]:
        phi, square = density(t), t * t
        return phi, (square - 1) * phi, (square * square - 6 * square + 3) * phi

    return _mean(cdf, t, reach, even)


def mean_cdf(centre: Numbers, reach: Numbers) -> Numbers:
    """Return the mean of `Phi` over `centre -+ reach`."""

    def even() -> tuple[Numbers, ...]:
        phi = density(centre)
        return cdf(centre), -centre * phi, (3 - centre * centre) * centre * phi

    return _mean(ramp, centre, reach, even)


def mean_ramp(centre: Numbers, reach: Numbers) -> Numbers:
    """Return the mean of `h` over `centre -+ reach`."""

    def even() -> tuple[Numbers, ...]:
        phi = density(centre)
        return ramp(centre), phi, (centre * centre - 1) * phi

    return _mean(integrated_ramp, centre, reach, even)


def _mean(
    antiderivative: Callable[[Numbers], Numbers],
    centre: Numbers,
    reach: Numbers,
    even: Callable[[], tuple[Numbers, ...]],
) -> Numbers:
    """Return a mean over `centre -+ reach`; `even` gives the function, its second and fourth derivative at `centre`."""
    xp, wide = namespace_of(centre), reach > NARROW
    everywhere = bool(wide.all())
    safe = reach if everywhere else xp.where(wide, reach, 1.0)
    quotient = (antiderivative(centre + safe) - antiderivative(centre - safe)) / (2 * safe)
    if everywhere:
        return quotient
    # The discarded branch must be finite too: its gradient is multiplied by zero.
    square = xp.square(xp.where(wide, 0.0, reach))
    parts = even()
    series = parts[0] + square / 6 * parts[1] + square * square / 120 * parts[2]
    return xp.where(wide, quotient, series)


def widening(low: Numbers, high: Numbers, mean: Numbers, reach: Numbers, second: Numbers, fourth: Numbers) -> Numbers:
    """Return the derivative, in `reach`, of the mean of a function over `centre -+ reach`.

    Args:
        low, high: the function at the ends.
        mean: its mean over the interval.
        reach: half the length of the interval.
        second, fourth: derivatives of the function at the centre, for narrow intervals.
    """
    series = reach / 3 * second + reach**3 / 30 * fourth
    return namespace_of(reach).where(reach > NARROW, ((low + high) / 2 - mean) / reach, series)


def integral(function: Callable[[Tensor], Tensor], low: Tensor, high: Tensor) -> Tensor:
    """Return the integral of a smooth function over `[low, high]`, any shape; its argument has one more dimension."""
    half, middle = (high - low) / 2, (high + low) / 2
    nodes, weights = torch.from_numpy(NODES), torch.from_numpy(WEIGHTS)
    return half * (weights * function(middle.unsqueeze(-1) + half.unsqueeze(-1) * nodes)).sum(dim=-1)
