"""Spearman's rank correlation, with an interval by Fisher's transformation."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from plumbline.statistics.inference import TAIL, Inference

Array = NDArray[np.float64]

ALMOST_ONE = 1 - 1e-12
"""Ranks in the same order have a correlation whose transform is infinite."""


class RankCorrelation(Inference):
    """Spearman's correlation; Bonett & Wright (2000) have the standard error of its transform.

    Args:
        a: `n`, at least four.
        b: `n`.
    """

    def __init__(self, a: Array, b: Array) -> None:
        ranks = rankdata(a), rankdata(b)
        varies = all(np.ptp(one) > 0 for one in ranks)
        self.value = float(np.corrcoef(*ranks)[0, 1]) if varies else np.nan
        self.error = np.sqrt((1 + self.value**2 / 2) / (len(ranks[0]) - 3))

    def _transform(self, correlation: float) -> float:
        return float(np.arctanh(np.clip(correlation, -ALMOST_ONE, ALMOST_ONE)))

    def interval(self) -> tuple[float, float]:
        """Return the ends of the 95% interval; -1 and 1 where one of both is constant."""
        if np.isnan(self.value):
            return -1.0, 1.0
        reach = float(ndtri(1 - TAIL)) * self.error
        middle = self._transform(self.value)
        return float(np.tanh(middle - reach)), float(np.tanh(middle + reach))

    def p_above(self, threshold: float) -> float:
        """Return the probability of a correlation as high."""
        return self._p(threshold, +1)

    def p_below(self, threshold: float) -> float:
        """Return the probability of one as low."""
        return self._p(threshold, -1)

    def _p(self, threshold: float, sign: int) -> float:
        if np.isnan(self.value):
            return 1.0
        return float(ndtr(-sign * (self._transform(self.value) - self._transform(threshold)) / self.error))
