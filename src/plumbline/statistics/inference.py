"""What a few seeds say of a number: an estimate, its 95% interval, and how unlikely the data are on either side of a
threshold.

Intervals and probabilities belong together: a threshold is in the interval where neither probability is below 2.5%.
docs/results/verdict-rule.md has their error rates, simulated, by seeds and distribution.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy  # its parts at their first use: scipy.stats takes longer to import than pandas
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from plumbline.core.seeding import stream_seed

Array = NDArray[np.float64]

CONFIDENCE = 0.95
TAIL = (1 - CONFIDENCE) / 2
RESAMPLES = 9_999
POWER = 0.8
"""Probability at which an effect counts as one that would have been seen."""

ROUNDING = 1e-13
"""Values that differ by less than this, in units of the greatest, are one value."""


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

    @property
    def detectable(self) -> float:
        """How far the number has to be from a threshold for a test of level .05 to see it four times in five.

        NaN where that depends on more than can be estimated.
        """
        return np.nan


def resamples(name: str, n: int, count: int = RESAMPLES) -> Array:
    """Return the share of each of `n` values in samples that are drawn from them: `count x n`."""
    rng = np.random.default_rng(stream_seed(name, n, "bootstrap"))
    drawn = rng.integers(n, size=(count, n)) + n * np.arange(count)[:, None]
    return np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n) / n


def studentised(means: Array, variances: Array, n: int, variance: Array | float) -> Array:
    """Return means of resamples in units of their own standard errors.

    A resample that is one value over and over is infinitely far from the mean, or is at it.

    Args:
        means: of resamples, minus the sample's.
        variances: of resamples, around their means.
        n: values of the sample.
        variance: of the sample; of several samples, one each, where means and variances are `resamples x samples`.
    """
    away = np.where(np.abs(means) > 1e-9 * np.sqrt(variance), means, 0.0)
    error = np.sqrt(np.where(variances > 1e-12 * variance, variances, 0.0) / (n - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(away == 0, 0.0, away / error)


def p_of_score(score: float | Array, scores: Array, n: int) -> Array:
    """Return the probability of a studentised mean as high as `score`: of Student's and the bootstrap's the greater.

    Args:
        score: of the sample, or of several, `studies`.
        scores: of resamples, `resamples`, or `resamples x studies`.
        n: values of each sample.
    """
    farther = np.count_nonzero(scores >= score, axis=0)
    found: Array = np.maximum(stdtr(n - 1, -score), (farther + 1) / (len(scores) + 1))
    return found


def p_of_constant(away: float, n: int) -> float:
    """Return the probability of `n` equal values beyond a threshold.

    Nothing is known of their spread: a sign test is what is left.
    """
    return 0.5**n if away > 0 else 1.0


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
            return p_of_constant(away, self.n)
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


class Median(Inference):
    """The median, by the exact sign test and the order statistics that belong to it.

    Args:
        values: `n`.
    """

    def __init__(self, values: Array) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        self.value = self.median = float(np.median(self.values))

    def interval(self) -> tuple[float, float]:
        """Return the ends of the interval, whose level is 95% or more; infinite with fewer than six values."""
        found = scipy.stats.quantile_test(self.values).confidence_interval(CONFIDENCE)
        low, high = (float(end) for end in found)
        return (-np.inf if np.isnan(low) else low), (np.inf if np.isnan(high) else high)

    def p_above(self, threshold: float) -> float:
        """Return the probability of so few values at or below the threshold."""
        return float(scipy.stats.quantile_test(self.values, q=threshold, alternative="greater").pvalue)

    def p_below(self, threshold: float) -> float:
        """Return the probability of so few values at or above the threshold."""
        return float(scipy.stats.quantile_test(self.values, q=threshold, alternative="less").pvalue)

    def beyond(self, threshold: float) -> Array:
        """Return the values minus the threshold."""
        return self.values - threshold


class Share(Inference):
    """A probability, by Clopper and Pearson's exact interval and binomial tests.

    Args:
        successes: `n`, 1 or 0 each; 1/2, a tie, counts half, and half a success is rounded against whoever asks.
    """

    def __init__(self, successes: Array) -> None:
        self.successes = np.asarray(successes, dtype=np.float64)
        self.n = len(self.successes)
        self.least, self.most = int(np.floor(self.successes.sum())), int(np.ceil(self.successes.sum()))
        self.value = float(self.successes.mean())

    def interval(self) -> tuple[float, float]:
        """Return the ends of the interval."""
        low = scipy.stats.binomtest(self.least, self.n).proportion_ci(CONFIDENCE).low
        high = scipy.stats.binomtest(self.most, self.n).proportion_ci(CONFIDENCE).high
        return float(low), float(high)

    def p_above(self, threshold: float) -> float:
        """Return the probability of so many successes."""
        return float(scipy.stats.binom.sf(self.least - 1, self.n, np.clip(threshold, 0, 1)))

    def p_below(self, threshold: float) -> float:
        """Return the probability of so few successes."""
        return float(scipy.stats.binom.cdf(self.most, self.n, np.clip(threshold, 0, 1)))

    def beyond(self, threshold: float) -> Array:
        """Return 1/2 for a success and -1/2 for none, whatever the threshold."""
        return self.successes - 0.5

    @property
    def detectable(self) -> float:
        """How far from one half the probability has to be; infinite where no outcome would do."""
        least = next((k for k in range(self.n + 1) if scipy.stats.binom.sf(k - 1, self.n, 0.5) <= TAIL), None)
        if least is None:
            return np.inf
        seen = scipy.optimize.brentq(lambda p: scipy.stats.binom.sf(least - 1, self.n, p) - POWER, 0.5, 1.0)
        return float(seen) - 0.5


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

    @property
    def detectable(self) -> float:
        """How far from 1 the ratio has to be, by Student's test of `a - b`."""
        return Mean(self.beyond(1.0), self.name).detectable / self.b.mean() if self.value > 0 else np.nan


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
        return [Share(task) for task in self.wins.T], [Share(1 - task) for task in self.wins.T]

    @cached_property
    def pooled(self) -> tuple[Share, Share]:
        """The shares of both methods, of all tasks in one."""
        return Share(self.wins.ravel()), Share(1 - self.wins.ravel())

    def interval(self) -> tuple[float, float]:
        """Return all thresholds that neither test rejects, to half a percent."""
        grid = np.linspace(0.0, 1.0, 201)
        kept = [x for x in grid if self.p_above(x) > TAIL and self.p_below(x) > TAIL]
        return float(min([self.value, *kept])), float(max([self.value, *kept]))

    def p_above(self, threshold: float) -> float:
        """Return the probability for one method ahead on every task: of both the lesser, twice."""
        return min(1.0, 2 * min(max(share.p_above(threshold) for share in side) for side in self.sides))

    def p_below(self, threshold: float) -> float:
        """Return the probability for a task where each method is not: the greater of both methods'."""
        return max(
            min(1.0, 2 * min(len(side) * min(share.p_below(threshold) for share in side), pooled.p_below(threshold)))
            for side, pooled in zip(self.sides, self.pooled, strict=True)
        )
