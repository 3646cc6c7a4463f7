"""Standard Gaussian integrals over intervals, exact where an interval has next to no length."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.special import erfc

NODES, WEIGHTS = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(32))
"""Of Gauss-Legendre quadrature on [-1, 1]."""

NARROW = 0.01
"""Half lengths up to this have means by Taylor series, whose first term left out is below 1e-14: a difference quotient
would divide rounding errors by the length."""


def density(t: Tensor) -> Tensor:
    """Return `phi(t)`, the standard Gaussian density."""
    return torch.exp(-0.5 * t.square()) / (2 * torch.pi) ** 0.5


def cdf(t: Tensor) -> Tensor:
    """Return `Phi(t)`; unlike `torch.special.ndtr`, whose left tail is `(1 + erf) / 2`, to full relative precision."""
    return 0.5 * erfc(-t / 2**0.5)


def ramp(t: Tensor) -> Tensor:
    """Return `h(t) = t Phi(t) + phi(t) = E [t + Z]+`, the antiderivative of `Phi` that vanishes at minus infinity."""
    return t * cdf(t) + density(t)


def integrated_ramp(t: Tensor) -> Tensor:
    """Return `H(t) = ((t^2 + 1) Phi(t) + t phi(t)) / 2`, the antiderivative of `h` that vanishes at minus infinity."""
    return 0.5 * ((t.square() + 1) * cdf(t) + t * density(t))


def mean_density(centre: Tensor, reach: Tensor) -> Tensor:
    """Return the mean of `phi` over `centre -+ reach`."""
    # In the left tail, where differences of Phi keep their digits.
    t = -centre.abs()
    phi, square = density(t), t.square()
    return _mean(cdf, t, reach, (phi, (square - 1) * phi, (square.square() - 6 * square + 3) * phi))


def mean_cdf(centre: Tensor, reach: Tensor) -> Tensor:
    """Return the mean of `Phi` over `centre -+ reach`."""
    phi = density(centre)
    return _mean(ramp, centre, reach, (cdf(centre), -centre * phi, (3 - centre.square()) * centre * phi))


def mean_ramp(centre: Tensor, reach: Tensor) -> Tensor:
    """Return the mean of `h` over `centre -+ reach`."""
    phi = density(centre)
    return _mean(integrated_ramp, centre, reach, (ramp(centre), phi, (centre.square() - 1) * phi))


def _mean(
    antiderivative: Callable[[Tensor], Tensor], centre: Tensor, reach: Tensor, even: tuple[Tensor, ...]
) -> Tensor:
    """Return a mean over `centre -+ reach`; `even` are the function, its second and its fourth derivative there."""
    wide = reach > NARROW
    safe = torch.where(wide, reach, torch.ones_like(reach))
    quotient = (antiderivative(centre + safe) - antiderivative(centre - safe)) / (2 * safe)
    # The other branch must be finite as well: its gradient is multiplied by zero.
    square = torch.where(wide, torch.zeros_like(reach), reach).square()
    series = even[0] + square / 6 * even[1] + square.square() / 120 * even[2]
    return torch.where(wide, quotient, series)


def integral(function: Callable[[Tensor], Tensor], low: Tensor, high: Tensor) -> Tensor:
    """Return the integral of a smooth function over `[low, high]`, any shape; it is given a new last dimension."""
    half, middle = (high - low) / 2, (high + low) / 2
    return half * (WEIGHTS * function(middle.unsqueeze(-1) + half.unsqueeze(-1) * NODES)).sum(dim=-1)
