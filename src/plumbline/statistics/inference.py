"""What a few seeds say of a number: an estimate, its 95% interval, and how unlikely the data are on either side of a
threshold.

Intervals and probabilities belong together: a threshold is in the interval where neither probability is below 2.5%.
docs/results/verdict-rule.md has their error rates, simulated, by seeds and distribution.
"""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CONFIDENCE = 0.95
TAIL = (1 - CONFIDENCE) / 2
POWER = 0.8
"""Probability at which an effect counts as one that would have been seen."""


class Inference(ABC):
    """Of a number about a population, from a sample of it.

    Attributes:
        value: the estimate.
        median: of the sample's single values; NaN where it has none.
    """

    value: float
    median: float = np.nan

    @abstractmethod
    def interval(self) -> tuple[float, float]:
        """Return the ends of the 95% interval; infinite where there are too few data for one."""

    @abstractmethod
    def p_above(self, threshold: float) -> float:
        """Return the probability of data as far above `threshold`, or farther, were the number at most that."""

    @abstractmethod
    def p_below(self, threshold: float) -> float:
        """Return the same for below."""

    def p_two_sided(self, threshold: float = 0.0) -> float:
        """Return the probability of data as far from `threshold`, on either side, were that the number."""
        return min(1.0, 2 * min(self.p_above(threshold), self.p_below(threshold)))

    def beyond(self, threshold: float) -> Array:
        """Return the distance of each value above a threshold; `0` where the number takes more than one value."""
        return np.empty(0)

    def deviation(self, threshold: float) -> float:
        """Return the standard deviation of a single value, of `beyond(threshold)`, in units of `value`.

        Zero where all are one, NaN where there are fewer than two or one is infinite.
        """
        away = self.beyond(threshold)
        return float(away.std(ddof=1)) if len(away) > 1 and np.isfinite(away).all() else np.nan

    @property
    def detectable(self) -> float:
        """How far the number has to be from a threshold for a test of level .05 to see it four times in five.

        NaN where that depends on more than can be estimated.
        """
        return np.nan
