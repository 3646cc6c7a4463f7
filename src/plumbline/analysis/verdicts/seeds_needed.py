"""How many seeds decide a part: see an effect that matters if there is one, and exclude it if there is none."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc
from scipy.stats import binom

from plumbline.analysis.verdicts.part_results import PartResult, samples
from plumbline.statistics.inference import TAIL
from plumbline.statistics.over_seeds import TASK_BY_TASK, pooled
from plumbline.statistics.power import MOST, approximate_seeds
from plumbline.study.claims import Size

Array = NDArray[np.float64]

POWER = 0.9
"""The probability that a part is decided."""

OF_MEDIANS = np.pi / 2
"""Seeds that a sign test takes for each that Student's test takes, of normal values."""

COUNTED = ("share-lower", "share-higher", "share-above")


class Contrast(NamedTuple):
    """Numbers a seed whose mean has to be told from zero.

    Attributes:
        values: `n`.
        mean: that has to be seen, above zero.
        power: the probability to see it.
    """

    values: Array
    mean: float
    power: float = POWER

    @property
    def effect(self) -> float:
        """The mean in standard deviations of a seed; infinite where seeds do not vary."""
        deviation = float(self.values.std(ddof=1))
        return self.mean / deviation if deviation > 0 else np.inf


def least_effect(one: PartResult) -> Size | None:
    """Return the effect that a part is to be decided by: what matters, or else the published size."""
    return one.test.matters or one.test.published_size


def contrasts(one: PartResult) -> list[Contrast]:
    """Return what has to be seen: the effect if it is there, and that it is not if it is not; or both ends of a range.

    Empty where the part says nothing about a size.
    """
    test, size = one.test, least_effect(one)
    if one.seeds < 2 or not np.isfinite(one.found.beyond(0.0)).all():
        return []
    if test.range is not None:
        low, high = test.range
        middle = _no_effect(one) if low < _no_effect(one) < high else (low + high) / 2
        ends = ((low, +1), (high, -1))
        return [Contrast(sign * _beyond(one, end), _apart(one, middle, end), (1 + POWER) / 2) for end, sign in ends]
    if size is None or size.given is None:
        return []
    sign = -1 if test.direction == "less" else 1
    if size.ratio is not None and test.statistic == "difference":
        method, baseline = pooled(samples(one.numbers))
        apart = abs(size.ratio - 1) * float(baseline.mean())
        return [
            Contrast(sign * (method - baseline), apart),
            Contrast(sign * (size.ratio * baseline - method), apart),
        ]
    apart = _apart(one, test.threshold, size.given)
    return [Contrast(sign * _beyond(one, test.threshold), apart), Contrast(-sign * _beyond(one, size.given), apart)]


def _beyond(one: PartResult, threshold: float) -> Array:
    return one.found.beyond(threshold)


def _no_effect(one: PartResult) -> float:
    return 1.0 if one.test.statistic == "ratio" else 0.0


def _apart(one: PartResult, first: float, second: float) -> float:
    """The distance of two values of the statistic, in units of the numbers that `beyond` returns."""
    unit = float(pooled(samples(one.numbers))[1].mean()) if one.test.statistic == "ratio" else 1.0
    return abs(second - first) * unit


def seeds_needed(one: PartResult, parts: int, as_found: bool = False) -> float:
    """Return the seeds that decide a part with a probability of .9, by the normal approximation.

    Args:
        one: its result, for spread and pairing.
        parts: of the claim, for which the level is corrected.
        as_found: whether to go by the effect as found where nothing says which effect matters.

    Returns:
        Seeds; NaN where no effect is to go by, or where the test counts seeds on several tasks at once.
    """
    tail = TAIL / parts
    if one.test.statistic in TASK_BY_TASK:
        return np.nan
    if one.test.statistic in COUNTED:
        size = least_effect(one)
        share = one.found.value if size is None and as_found else getattr(size, "value", None)
        return np.nan if share is None else _of_counts(one, share, tail)
    found = contrasts(one) or ([_as_found(one)] if as_found and one.test.range is None else [])
    seeds = [float(approximate_seeds(some.effect, some.power, tail)) for some in found]
    more = OF_MEDIANS if one.test.location == "median" else 1.0
    return float(np.ceil(more * max(seeds))) if seeds else np.nan


def _as_found(one: PartResult) -> Contrast:
    values = one.found.beyond(one.test.threshold)
    return Contrast(values, abs(float(values.mean())))


def _of_counts(one: PartResult, share: float, tail: float) -> float:
    """Return the seeds by which an exact binomial test sees a share; pairs are pooled over the tasks of a test."""
    sizes = np.arange(2, MOST + 1)
    sign = 1 if one.test.direction == "greater" else -1
    threshold, share = (x if sign > 0 else 1 - x for x in (one.test.threshold, share))
    least = binom.isf(tail, sizes, threshold) + 1
    seen = bdtrc(least - 1, sizes, share) >= POWER
    # From there on: with one seed more the power of an exact test may fall.
    fewest = sizes[~seen].max(initial=1) + 1
    return float(np.ceil(fewest / len(one.test.tasks))) if fewest <= MOST else np.inf
