"""What a few seeds say of a number: an estimate, its 95% interval, and how unlikely the data are on either side of a
threshold.

docs/verdicts.md has the error rates of all of them, simulated, by seeds and distribution.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom, binomtest, quantile_test
from scipy.stats import t as student

from plumbline.seeding import stream_seed

Array = NDArray[np.float64]

CONFIDENCE = 0.95
TAIL = (1 - CONFIDENCE) / 2
RESAMPLES = 9_999
POWER = 0.8
"""Probability at which an effect counts as one that would have been seen."""


class Inference(ABC):
    """Of a number about a population, from a sample of it."""

    value: float

    @abstractmethod
    def interval(self) -> tuple[float, float]:
        """Return the ends of the 95% interval; infinite where there are too few data for one."""

    @abstractmethod
    def p_above(self, threshold: float) -> float:
        """Return the probability of data as far above `threshold`, or farther, were the number at most that."""

    @abstractmethod
    def p_below(self, threshold: float) -> float:
        """Return the same for below."""

    @property
    @abstractmethod
    def detectable(self) -> float:
        """How far the number has to be from a threshold for a test of level .05 to see it four times in five."""


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
        self.error = float(self.values.std(ddof=1) / np.sqrt(self.n)) if self.n > 1 else np.inf

    @cached_property
    def scores(self) -> Array:
        """Studentised means of resamples, sorted."""
        rng = np.random.default_rng(stream_seed(self.name, self.n, "bootstrap"))
        drawn = self.values[rng.integers(self.n, size=(RESAMPLES, self.n))]
        away, error = drawn.mean(axis=1) - self.value, drawn.std(axis=1, ddof=1) / np.sqrt(self.n)
        # A resample of one value alone is infinitely far from the mean, or is at it.
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sort(np.where(np.isclose(away, 0.0, atol=1e-12 * self.error), 0.0, away / error))

    def interval(self) -> tuple[float, float]:
        """Return the ends of the 95% interval."""
        if not 0 < self.error < np.inf:
            return (self.value, self.value) if self.error == 0 else (-np.inf, np.inf)
        reach = float(student.ppf(1 - TAIL, self.n - 1))
        low, high = np.quantile(self.scores, [TAIL, 1 - TAIL], method="inverted_cdf")
        return self.value - max(reach, float(high)) * self.error, self.value + max(reach, -float(low)) * self.error

    def p_above(self, threshold: float) -> float:
        """Return the greater of both probabilities."""
        return self._p(threshold, +1)

    def p_below(self, threshold: float) -> float:
        """Return the greater of both probabilities."""
        return self._p(threshold, -1)

    def _p(self, threshold: float, sign: int) -> float:
        away = sign * (self.value - threshold)
        if not 0 < self.error < np.inf:
            return 0.0 if self.error == 0 and away > 0 else 1.0
        score = away / self.error
        farther = np.count_nonzero(sign * self.scores >= score)
        return max(float(student.sf(score, self.n - 1)), (farther + 1) / (RESAMPLES + 1))

    @property
    def detectable(self) -> float:
        """The distance, by Student's test."""
        if self.n < 2:
            return np.inf
        return float(student.ppf([1 - TAIL, POWER], self.n - 1).sum()) * self.error


class Median(Inference):
    """The median, by the exact sign test and the order statistics that belong to it.

    Args:
        values: `n`.
    """

    def __init__(self, values: Array) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        self.value = float(np.median(self.values))

    def interval(self) -> tuple[float, float]:
        """Return the ends of the interval, whose level is 95% or more; infinite with fewer than six values."""
        found = quantile_test(self.values).confidence_interval(CONFIDENCE)
        low, high = (float(end) for end in found)
        return (-np.inf if np.isnan(low) else low), (np.inf if np.isnan(high) else high)

    def p_above(self, threshold: float) -> float:
        """Return the probability of so few values at or below the threshold."""
        return float(quantile_test(self.values, q=threshold, alternative="greater").pvalue)

    def p_below(self, threshold: float) -> float:
        """Return the probability of so few values at or above the threshold."""
        return float(quantile_test(self.values, q=threshold, alternative="less").pvalue)

    @property
    def detectable(self) -> float:
        """NaN: what a sign test sees depends on the whole distribution."""
        return np.nan


class Share(Inference):
    """A probability, by Clopper and Pearson's exact interval and binomial tests.

    Args:
        successes: of trials; ties count as half a success, rounded against whoever asks.
        n: trials.
    """

    def __init__(self, successes: float, n: int) -> None:
        self.successes, self.n = successes, n
        self.value = successes / n

    def interval(self) -> tuple[float, float]:
        """Return the ends of the interval."""
        low = binomtest(int(np.floor(self.successes)), self.n).proportion_ci(CONFIDENCE).low
        high = binomtest(int(np.ceil(self.successes)), self.n).proportion_ci(CONFIDENCE).high
        return float(low), float(high)

    def p_above(self, threshold: float) -> float:
        """Return the probability of so many successes."""
        return float(binom.sf(np.floor(self.successes) - 1, self.n, np.clip(threshold, 0, 1)))

    def p_below(self, threshold: float) -> float:
        """Return the probability of so few successes."""
        return float(binom.cdf(np.ceil(self.successes), self.n, np.clip(threshold, 0, 1)))

    @property
    def detectable(self) -> float:
        """How far from one half the probability has to be; infinite where no outcome would do."""
        least = next((k for k in range(self.n + 1) if binom.sf(k - 1, self.n, 0.5) <= TAIL), None)
        if least is None:
            return np.inf
        return float(brentq(lambda p: binom.sf(least - 1, self.n, p) - POWER, 0.5, 1.0)) - 0.5


class Ratio(Inference):
    """The ratio of two means, of pairs: it is `r` where the mean of `a - r b` is zero; Fieller (1954).

    Args:
        a: `n`.
        b: `n`, of a positive mean.
        name: what resamples are seeded by.
    """

    def __init__(self, a: Array, b: Array, name: str) -> None:
        self.a, self.b, self.name = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64), name
        self.value = float(self.a.mean() / self.b.mean())

    def at(self, ratio: float) -> Mean:
        """Return the mean that is zero if the ratio is this."""
        return Mean(self.a - ratio * self.b, self.name)

    def interval(self) -> tuple[float, float]:
        """Return all ratios that neither side's test rejects; infinite where the denominator may be zero."""
        return self._end(self.p_above, -1), self._end(self.p_below, +1)

    def _end(self, p: Callable[[float], float], sign: int) -> float:
        step = 0.05 * abs(self.value) or 0.05
        inside, outside = self.value, self.value + sign * step
        while p(outside) > TAIL:
            step *= 2
            inside, outside = outside, outside + sign * step
            if step > 1e3 * (abs(self.value) or 1.0):
                return sign * np.inf
        return float(brentq(lambda ratio: p(ratio) - TAIL, inside, outside, xtol=1e-4 * abs(self.value) or 1e-6))

    def p_above(self, threshold: float) -> float:
        """Return the probability for the mean of `a - threshold b` above zero."""
        return self.at(threshold).p_above(0.0)

    def p_below(self, threshold: float) -> float:
        """Return the probability for it below zero."""
        return self.at(threshold).p_below(0.0)

    @property
    def detectable(self) -> float:
        """That of `a - b`, in means of b."""
        return self.at(1.0).detectable / float(self.b.mean())


class ConsistentWins(Inference):
    """The share of seeds that one of two methods wins wherever they are compared: of the one with more.

    A task has a share of seeds in which the method is ahead, ties by half. The least of them is the method's, one minus
    the greatest the baseline's. That it is below a threshold is shown for each of both: by the task where it does
    worst, by as many tests as tasks, or by all seeds of all tasks in one sample, whose share is no less than the least.

    Args:
        wins: `seeds x tasks`: 1, 0, or 1/2 for a tie.
    """

    def __init__(self, wins: Array) -> None:
        self.wins = np.asarray(wins, dtype=np.float64)
        shares = self.wins.mean(axis=0)
        self.value = float(max(shares.min(), 1 - shares.max()))

    @cached_property
    def sides(self) -> tuple[list[Share], list[Share]]:
        """The shares of both methods, a task each."""
        won, n = self.wins.sum(axis=0), len(self.wins)
        return [Share(float(k), n) for k in won], [Share(float(n - k), n) for k in won]

    def interval(self) -> tuple[float, float]:
        """Return all thresholds that neither test rejects."""
        grid = np.linspace(0.0, 1.0, 201)
        kept = [x for x in grid if self.p_above(x) > TAIL and self.p_below(x) > TAIL]
        return (float(min(kept)), float(max(kept))) if kept else (self.value, self.value)

    def p_above(self, threshold: float) -> float:
        """Return the probability for one method ahead on every task: of both the lesser, twice."""
        return min(1.0, 2 * min(max(share.p_above(threshold) for share in side) for side in self.sides))

    def p_below(self, threshold: float) -> float:
        """Return the probability for a task where each method is not: the greater of both methods'."""
        return max(self._not_ahead(side, threshold) for side in self.sides)

    @staticmethod
    def _not_ahead(side: list[Share], threshold: float) -> float:
        pooled = Share(sum(share.successes for share in side), sum(share.n for share in side))
        worst = len(side) * min(share.p_below(threshold) for share in side)
        return min(1.0, 2 * min(worst, pooled.p_below(threshold)))

    @property
    def detectable(self) -> float:
        """NaN: it depends on all tasks."""
        return np.nan
