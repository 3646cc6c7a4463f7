"""What a few seeds say of a mean, and of a ratio of means."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy  # its parts at their first use: scipy.stats takes longer to import than pandas
from numpy.typing import NDArray
from scipy.special import stdtrit

from plumbline.statistics.bootstrap import p_of_constant, p_of_score, resamples, studentised
from plumbline.statistics.inference import POWER, TAIL, Inference

Array = NDArray[np.float64]

ROUNDING = 1e-13
"""Values that differ by less than this, in units of the greatest, are one value, and so are a value and a threshold."""


class Mean(Inference):
    """The mean: at each end the wider of Student's interval and that of the studentised bootstrap.

    Student's is right for normal values and too short where they are skewed, as where single runs get stuck; the
    bootstrap's is nearly right there, and too short for heavy tails. Efron & Tibshirani (1993), section 12.5.

    Args:
        values: `n`.
        name: what resamples are seeded by.
    """

    def __init__(self, values: Array, name: str) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        self.name = name
        self.n = len(self.values)
        self.value = float(self.values.mean())
        self.median = float(np.median(self.values))

    @cached_property
    def error(self) -> float:
        """Standard error; zero where all values are one, infinite where one of them is."""
        if not np.isfinite(self.values).all():
            return np.inf
        if np.ptp(self.values) <= ROUNDING * np.abs(self.values).max():
            return 0.0
        return float(self.values.std(ddof=1) / np.sqrt(self.n))

    @cached_property
    def scores(self) -> Array:
        """Studentised means of resamples."""
        shares, centred = resamples(self.name, self.n), self.values - self.value
        means = shares @ centred
        return studentised(means, shares @ centred**2 - means**2, self.n, float(np.mean(centred**2)))

    def interval(self) -> tuple[float, float]:
        """Return the ends of the 95% interval."""
        if self.error == np.inf or (self.error == 0 and p_of_constant(1.0, self.n) > TAIL):
            return -np.inf, np.inf
        if self.error == 0:
            return self.value, self.value
        reach = float(stdtrit(self.n - 1, 1 - TAIL))
        low, high = np.quantile(self.scores, [TAIL, 1 - TAIL], method="inverted_cdf")
        return self.value - max(reach, float(high)) * self.error, self.value + max(reach, -float(low)) * self.error

    def p_above(self, threshold: float) -> float:
        """Return the greater of both probabilities."""
        return self._p(threshold, +1)

    def p_below(self, threshold: float) -> float:
        """Return the greater of both probabilities."""
        return self._p(threshold, -1)

    def _p(self, threshold: float, sign: int) -> float:
        if self.error == np.inf:
            return 1.0
        away = sign * (self.value - threshold)
        if self.error == 0:
            one = abs(away) <= ROUNDING * max(abs(self.value), abs(threshold))
            return p_of_constant(0.0 if one else away, self.n)
        return float(p_of_score(away / self.error, sign * self.scores, self.n))

    def beyond(self, threshold: float) -> Array:
        """Return the values minus the threshold."""
        return self.values - threshold

    @property
    def detectable(self) -> float:
        """The distance, by Student's test."""
        if self.n < 2:
            return np.inf
        return float(stdtrit(self.n - 1, [1 - TAIL, POWER]).sum()) * self.error


class Ratio(Inference):
    """The ratio of two means, of pairs: it is above `r` where the mean of `a - r b` is above zero; Fieller (1954).

    That is a `Mean`, whose resamples are the same for every `r`. Of a mean of `b` below zero nothing is said.

    Args:
        a: `n`.
        b: `n`.
        name: what resamples are seeded by.
    """

    def __init__(self, a: Array, b: Array, name: str) -> None:
        self.a, self.b, self.name = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64), name
        self.n = len(self.a)
        self.value = float(self.a.mean() / self.b.mean()) if 0 < self.b.mean() < np.inf else np.nan

    @property
    def median(self) -> float:  # type: ignore[override]
        """The median of the ratios of pairs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.median(np.where(self.a == self.b, 1.0, self.a / self.b)))

    @cached_property
    def moments(self) -> tuple[Array, Array, Array, Array, Array]:
        """Means of both in resamples, minus the sample's, and of their squares and product: aa, ab, bb."""
        shares = resamples(self.name, self.n)
        a, b = self.a - self.a.mean(), self.b - self.b.mean()
        return shares @ a, shares @ b, shares @ (a * a), shares @ (a * b), shares @ (b * b)

    def interval(self) -> tuple[float, float]:
        """Return all ratios that neither side's test rejects; infinite where the denominator may be zero."""
        if not np.isfinite(self.value):
            return -np.inf, np.inf
        return self._end(self.p_above, -1), self._end(self.p_below, +1)

    def _end(self, p: Callable[[float], float], sign: int) -> float:
        size = abs(self.value) or 1.0
        step = 0.05 * size
        inside, outside = self.value, self.value + sign * step
        while p(outside) > TAIL:
            step *= 2
            inside, outside = outside, outside + sign * step
            if step > 1e3 * size:
                return sign * np.inf
        return float(scipy.optimize.brentq(lambda ratio: p(ratio) - TAIL, inside, outside, xtol=1e-6 * size))

    def p_above(self, threshold: float) -> float:
        """Return the probability for the mean of `a - threshold b` above zero."""
        return self._p(threshold, +1)

    def p_below(self, threshold: float) -> float:
        """Return the probability for it below zero."""
        return self._p(threshold, -1)

    def _p(self, ratio: float, sign: int) -> float:
        gaps = Mean(self.beyond(ratio), self.name)
        if not np.isfinite(self.value) or gaps.error == np.inf:
            return 1.0
        scale = np.abs(self.a).max() + abs(ratio) * np.abs(self.b).max()
        if gaps.error <= ROUNDING * scale:
            return p_of_constant(sign * gaps.value if abs(gaps.value) > ROUNDING * scale else 0.0, self.n)
        a, b, aa, ab, bb = self.moments
        means = a - ratio * b
        variances = aa - 2 * ratio * ab + ratio**2 * bb - means**2
        scores = studentised(means, variances, self.n, float(gaps.values.var()))
        return float(p_of_score(sign * gaps.value / gaps.error, sign * scores, self.n))

    def beyond(self, threshold: float) -> Array:
        """Return `a - threshold b`."""
        return self.a - threshold * self.b

    def deviation(self, threshold: float) -> float:
        """Return that of `a - threshold b`, divided by the mean of `b`: NaN where there is no ratio."""
        return super().deviation(threshold) / float(self.b.mean()) if np.isfinite(self.value) else np.nan

    @property
    def detectable(self) -> float:
        """How far from 1 the ratio has to be, by Student's test of `a - b`."""
        return Mean(self.beyond(1.0), self.name).detectable / self.b.mean() if self.value > 0 else np.nan
