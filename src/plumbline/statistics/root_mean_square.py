"""The root mean square of a Gaussian sample of mean zero, with the exact interval."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, chdtrc, chdtri

from plumbline.statistics.inference import TAIL, Inference

Array = NDArray[np.float64]


class RootMeanSquare(Inference):
    """The standard deviation of Gaussian values around zero: their sum of squares over its square is chi-squared.

    Exact for Gaussian values, however few; of heavy tails the interval is too short.

    Args:
        values: `n`.
    """

    def __init__(self, values: Array) -> None:
        self.n = len(values)
        self.value = float(np.sqrt(np.mean(np.square(values))))

    def interval(self) -> tuple[float, float]:
        """Return the ends of the 95% interval."""
        low, high = self.value * np.sqrt(self.n / chdtri(self.n, [TAIL, 1 - TAIL]))
        return float(low), float(high)

    def p_above(self, threshold: float) -> float:
        """Return the probability of a sum of squares as large."""
        return float(chdtrc(self.n, self.n * (self.value / threshold) ** 2))

    def p_below(self, threshold: float) -> float:
        """Return the probability of one as small."""
        return float(chdtr(self.n, self.n * (self.value / threshold) ** 2))
