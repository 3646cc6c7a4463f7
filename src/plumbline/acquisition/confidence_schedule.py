"""Widths of confidence bounds under which GP-UCB has a regret bound: Srinivas et al. (2010)."""

import math

from pydantic import Field, PositiveFloat

from plumbline.core.options import Options


class ConfidenceSchedule(Options):
    """The factor of theorem 1 in a finite set of points, and of theorem 2 in a box, here the unit cube.

    Attributes:
        delta: greatest probability that the regret bound fails.
        a, b: constants of the kernel in a box: a derivative of f exceeds L with a probability of at most
            `a exp(-(L / b)^2)`. They are usually unknown; 1 is the usual choice.
    """

    delta: float = Field(default=0.1, gt=0.0, lt=1.0)
    a: PositiveFloat = 1.0
    b: PositiveFloat = 1.0

    def sqrt_beta(self, t: int, dim: int, size: float = math.inf) -> float:
        """Return the multiple of the standard deviation in round t, counted from 1.

        Args:
            t: the round, or the evaluation if a round has several.
            dim: number of inputs, `d`.
            size: number of points; infinite in a box.
        """
        if math.isfinite(size):
            return math.sqrt(max(0.0, 2 * math.log(size * t**2 * math.pi**2 / (6 * self.delta))))
        inside = max(1.0, math.log(4 * dim * self.a / self.delta))
        points = dim * math.log(t**2 * dim * self.b * math.sqrt(inside))
        return math.sqrt(max(0.0, 2 * math.log(2 * t**2 * math.pi**2 / (3 * self.delta)) + 2 * points))
