"""Affine transforms of inputs to the unit cube and of observations to mean zero and variance one."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from plumbline.core.errors import PlumblineError

LEAST, MOST = 1e-140, 1e140
"""Least and greatest size of observations, other than zero, of which a float64 holds the squares."""

ROUNDING = 1e-14
"""Standard deviation, as a share of the greatest observation, below which observations differ by rounding alone."""


@dataclass(frozen=True)
class Standardisation:
    """The input transform `(x - low) / width` and the outcome transform `(y - location) / scale`.

    Attributes:
        low, width: `d`.
        location, scale: mean and standard deviation of the observations.
    """

    low: Tensor
    width: Tensor
    location: float
    scale: float

    def inputs(self, X: Tensor) -> Tensor:
        """Return points of the problem's bounds in the unit cube."""
        return (X - self.low) / self.width

    def points(self, X: Tensor) -> Tensor:
        """Return points of the unit cube in the problem's bounds."""
        return self.low + X * self.width

    def outputs(self, y: Tensor) -> Tensor:
        """Return standardised observations."""
        return (y - self.location) / self.scale

    def observations(self, standardised: Tensor) -> Tensor:
        """Return standardised observations in their own units."""
        return self.location + self.scale * standardised

    def standardising(self, y: Tensor) -> "Standardisation":
        """Return the same input transform, with the outcome transform that standardises `y` (`n`)."""
        new = standardisation_of(torch.stack([self.low, self.low + self.width]), y)
        return replace(self, location=new.location, scale=new.scale)


def standardisation_of(bounds: Tensor, y: Tensor, least: float = 0.0) -> Standardisation:
    """Return the transforms of a box to the unit cube, and of observations to mean zero and variance one.

    Observations that are all equal become zero. The units of the others do not matter.

    Args:
        bounds: `2 x d`.
        y: `n`.
        least: standard deviation below which observations are centred but not scaled.

    Raises:
        PlumblineError: the observations are too large or too small to be squared.
    """
    size = float(y.abs().max())
    if size > MOST or 0 < size < LEAST:
        raise PlumblineError(
            f"observations of {size:.3g} are too {'large' if size > MOST else 'small'} for a surrogate: "
            f"scale the objective so that the greatest lies between {LEAST:g} and {MOST:g}"
        )
    spread = float(y.std()) if len(y) > 1 else 0.0
    least = max(least, ROUNDING * size)
    return Standardisation(bounds[0], bounds[1] - bounds[0], float(y.mean()), spread if spread > least else 1.0)


def identity(dim: int) -> Standardisation:
    """Return the identity transforms of inputs of dimension `dim` and of observations."""
    zero = torch.zeros(dim, dtype=torch.float64)
    return Standardisation(zero, zero + 1, 0.0, 1.0)
