"""What a few seeds say of a median and of shares, by exact tests, which ask nothing of the distribution."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy  # its parts at their first use: scipy.stats takes longer to import than pandas
from numpy.typing import NDArray

from plumbline.statistics.inference import CONFIDENCE, POWER, TAIL, Inference

Array = NDArray[np.float64]


FAIR_COIN = 0.5
"""Standard deviation of a success of probability one half: the unit of shares."""


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

    def deviation(self, threshold: float) -> float:
        """Return one half, the standard deviation of a fair coin."""
        return FAIR_COIN

    @property
    def detectable(self) -> float:
        """How far from one half the probability has to be; infinite where no outcome would do."""
        least = next((k for k in range(self.n + 1) if scipy.stats.binom.sf(k - 1, self.n, 0.5) <= TAIL), None)
        if least is None:
            return np.inf
        seen = scipy.optimize.brentq(lambda p: scipy.stats.binom.sf(least - 1, self.n, p) - POWER, 0.5, 1.0)
        return float(seen) - 0.5


class ConsistentWins(Inference):
    """The share of seeds that one of two methods wins wherever they are compared: of the one with more.

    A task has a share of seeds in which the method is ahead, ties by half. The least of them is the method's, one minus
    the greatest the baseline's. That it is below a threshold is shown for each of both: by the task where it does
    worst, by as many tests as tasks, or by all seeds of all tasks in one sample, whose share is no less than the least.

    Args:
        wins: of each task a value for each of its seeds: 1, 0, or 1/2 for a tie. Tasks may have different seeds.
    """

    def __init__(self, wins: Sequence[Array]) -> None:
        self.wins = [np.asarray(task, dtype=np.float64) for task in wins]
        shares = [task.mean() for task in self.wins]
        self.value = float(max(min(shares), 1 - max(shares)))

    @cached_property
    def sides(self) -> tuple[list[Share], list[Share]]:
        """The shares of both methods, a task each."""
        return [Share(task) for task in self.wins], [Share(1 - task) for task in self.wins]

    @cached_property
    def pooled(self) -> tuple[Share, Share]:
        """The shares of both methods, of all tasks in one."""
        every = np.concatenate(self.wins)
        return Share(every), Share(1 - every)

    def deviation(self, threshold: float) -> float:
        """Return one half, as of a share."""
        return FAIR_COIN

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
