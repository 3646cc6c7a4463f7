"""The power of the paired test of a mean difference (`plumbline.statistics.means.Mean`), and the seeds it takes.

That test asks for more than Student's: where seeds are few, or differences skewed, textbook formulas promise too much.
So power is simulated with the very test. Samples come from a smoothed bootstrap of the differences at hand, which keeps
their skewness where there are enough of them to show it; Silverman & Young (1987).
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from plumbline.core.seeding import stream_seed
from plumbline.statistics.bootstrap import p_of_score, resamples, studentised
from plumbline.statistics.inference import TAIL

Array = NDArray[np.float64]

BLOCKS, BLOCK = 20, 100
"""Simulated studies, of which a block shares its resamples: a power has a standard error of at most .011."""

SCORES = 999
"""Resamples of each, with which the test at .025 is exact too: 25 / 1,000."""

DRAWS = 2_000
"""Resamples of the seeds that were run."""

MOST = 1_000
"""Seeds that are simulated at most; of more, only this is said."""


def seen(samples: Array, name: str, tail: float = TAIL) -> NDArray[np.bool_]:
    """Return whether the test says of each sample that its mean is above zero.

    Args:
        samples: `studies x n`.
        name: what resamples are seeded by.
        tail: level of the test on its side.
    """
    n = samples.shape[1]
    means = samples.mean(axis=1)
    centred = (samples - means[:, None]).T
    variance = np.mean(centred**2, axis=0)
    shares = resamples(name, n, SCORES)
    away = shares @ centred
    scores = studentised(away, shares @ centred**2 - away**2, n, variance)
    with np.errstate(divide="ignore"):
        score = means / np.sqrt(variance / (n - 1))
    return p_of_score(score, scores, n) <= tail


class Power:
    """The probability that the paired test sees an effect, by the number of seeds.

    Args:
        differences: `n` as measured, not all one value.
        effect: a mean difference other than zero; it counts as seen where it is significant and has its sign.
        name: what draws are seeded by.
        tail: level of the test on its side.
    """

    def __init__(self, differences: Array, effect: float, name: str, tail: float = TAIL) -> None:
        centred = differences - differences.mean()
        self.shape = np.sign(effect) * centred / centred.std()
        self.effect = abs(effect) / float(differences.std(ddof=1))
        self.name = name
        self.tail = tail
        self.of = lru_cache(maxsize=None)(self._of)

    def _of(self, seeds: int) -> float:
        """Return the power with so many seeds, at least two."""
        rng = np.random.default_rng(stream_seed(f"power {self.name}", seeds, "bootstrap"))
        samples = (self.draw(rng, (BLOCK, seeds)) + self.effect for _ in range(BLOCKS))
        return float(np.mean([seen(block, f"{self.name} {i}", self.tail) for i, block in enumerate(samples)]))

    def draw(self, rng: np.random.Generator, size: tuple[int, int]) -> Array:
        """Return differences of mean zero and deviation one: those measured, blurred by their standard error."""
        blur = 1 / np.sqrt(len(self.shape))
        values = self.shape[rng.integers(len(self.shape), size=size)] + blur * rng.standard_normal(size)
        return values / np.sqrt(1 + blur**2)

    def seeds(self, power: float) -> float:
        """Return the least number of seeds with this power, to 2%; infinite where it is more than `MOST`.

        The search widens a bracket around the normal approximation, and halves it.
        """
        high = int(min(approximate_seeds(self.effect, power, self.tail) + 2, MOST))
        low = max(4 * high // 5, 2)
        while self.of(high) < power:
            if high == MOST:
                return np.inf
            low, high = high, min(high + high // 4 + 1, MOST)
        while low > 2 and self.of(low) >= power:
            low, high = max(4 * low // 5, 2), low
        while high - low > max(1, high // 50):
            middle = (low + high) // 2
            low, high = (low, middle) if self.of(middle) >= power else (middle, high)
        return float(high)

    def more(self, power: float) -> float:
        """Return how many seeds the simulation adds to the normal approximation; none where it ends at `MOST`."""
        seeds = self.seeds(power)
        return seeds - float(approximate_seeds(self.effect, power, self.tail)) if np.isfinite(seeds) else 0.0


def approximate_seeds(effect: Array | float, power: float, tail: float = TAIL) -> Array | float:
    """Return the seeds that Student's test takes for normal differences; Guenther (1981).

    Args:
        effect: in standard deviations of the differences.
        power: the probability to see it.
        tail: level of the test on its side.
    """
    level, reach = ndtri(1 - tail), ndtri(power)
    with np.errstate(divide="ignore"):
        return (level + reach) ** 2 / np.square(effect) + level**2 / 2


def seeds_interval(effects: Array, power: float, more: float = 0.0) -> tuple[float, float]:
    """Return the ends of the 95% interval of a number of seeds, from effects in resamples of the seeds that were run.

    Args:
        effects: in standard deviations of the differences, a resample each.
        power: that is asked for.
        more: seeds that simulation adds to the normal approximation, taken to be the same for all resamples.
    """
    found = np.maximum(np.ceil(approximate_seeds(effects, power) + more), 2)
    low, high = np.quantile(found, [TAIL, 1 - TAIL], method="inverted_cdf")
    return _bounded(float(low)), _bounded(float(high))


def _bounded(seeds: float) -> float:
    return seeds if seeds <= MOST else np.inf


def effects_of_resamples(differences: Array, effect: Array | float, drawn: NDArray[np.intp]) -> Array:
    """Return an effect in standard deviations of the differences in resamples, corrected for the few values of each.

    Args:
        differences: `n`.
        effect: one, or one a resample.
        drawn: `resamples x n`: which values.
    """
    n = len(differences)
    deviations = differences[drawn].std(axis=1, ddof=1) * np.sqrt(n / (n - 1))
    with np.errstate(divide="ignore"):
        return np.abs(effect) / deviations
