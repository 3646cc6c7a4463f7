"""What inputs and observations are divided by before a model sees them."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Standardisation:
    """What inputs and observations are divided by: `(x - low) / width` and `(y - location) / scale`.

    Attributes:
        low, width: `d`.
        location, scale: of the observations.
    """

    low: Tensor
    width: Tensor
    location: float
    scale: float

    def inputs(self, X: Tensor) -> Tensor:
        """Return points in the unit cube."""
        return (X - self.low) / self.width

    def points(self, X: Tensor) -> Tensor:
        """Return points of the unit cube in the problem's bounds."""
        return self.low + X * self.width

    def outputs(self, y: Tensor) -> Tensor:
        """Return standardised observations."""
        return (y - self.location) / self.scale

    def observations(self, standardised: Tensor) -> Tensor:
        """Return what was standardised, in its own units."""
        return self.location + self.scale * standardised

    def standardising(self, y: Tensor) -> "Standardisation":
        """Return the same units of inputs, and those in which `y` (`n`) are standardised."""
        found = standardisation_of(torch.stack([self.low, self.low + self.width]), y)
        return replace(self, location=found.location, scale=found.scale)


def standardisation_of(bounds: Tensor, y: Tensor, least: float = 0.0) -> Standardisation:
    """Return the units in which a box is the unit cube and observations are standardised; equal ones become zero.

    Args:
        bounds: `2 x d`.
        y: `n`.
        least: standard deviation below which observations are centred alone.
    """
    spread = float(y.std()) if len(y) > 1 else 0.0
    least = max(least, 1e-12 * (1 + float(y.abs().max())))
    return Standardisation(bounds[0], bounds[1] - bounds[0], float(y.mean()), spread if spread > least else 1.0)


def identity(dim: int) -> Standardisation:
    """Return the units of inputs in the unit cube of dimension `dim`, and of observations that stay what they are."""
    zero = torch.zeros(dim, dtype=torch.float64)
    return Standardisation(zero, zero + 1, 0.0, 1.0)
