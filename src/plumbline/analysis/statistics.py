"""Statistics over seeds, with bootstrap intervals that keep the pairs together."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap
from scipy.stats import t as student

from plumbline.errors import PlumblineError, unknown
from plumbline.seeding import stream_seed

Array = NDArray[np.float64]

Statistic = Callable[..., Array]
"""Of `... x seeds x rounds` values of a method, and of a baseline on the same seeds (or None): `...` numbers."""

CONFIDENCE = 0.95
RESAMPLES = 10_000


class Interval(NamedTuple):
    """A statistic with its bootstrap interval."""

    value: float
    low: float
    high: float


def _need(baseline: Array | None) -> Array:
    if baseline is None:
        raise PlumblineError("this statistic compares with a `baseline`: name one in the claim's test")
    return baseline


def final_difference(method: Array, baseline: Array | None) -> Array:
    """Return the mean over seeds of method minus baseline at the last round; `... x seeds x rounds` in."""
    return (method - _need(baseline))[..., -1].mean(axis=-1)


def mean_difference(method: Array, baseline: Array | None) -> Array:
    """Return the mean over seeds and rounds of method minus baseline: who is ahead, on average over the run."""
    return (method - _need(baseline)).mean(axis=(-2, -1))


def share_of_steps_below(method: Array, baseline: Array | None) -> Array:
    """Return the share of rounds at which the mean over seeds is lower than the baseline's."""
    return (method.mean(axis=-2) < _need(baseline).mean(axis=-2)).mean(axis=-1)


def share_above(method: Array, baseline: Array | None, level: float = 0.0) -> Array:
    """Return the share of seeds that end above `level`."""
    return (method[..., -1] > level).mean(axis=-1)


def final_mean(method: Array, baseline: Array | None) -> Array:
    """Return the mean over seeds at the last round."""
    return method[..., -1].mean(axis=-1)


def mean_level(method: Array, baseline: Array | None) -> Array:
    """Return the mean over seeds and rounds."""
    return method.mean(axis=(-2, -1))


def spread_difference(method: Array, baseline: Array | None) -> Array:
    """Return the standard deviation over seeds at the last round, method minus baseline: who is steadier."""
    return method[..., -1].std(axis=-1) - _need(baseline)[..., -1].std(axis=-1)


def deviation_difference(method: Array, baseline: Array | None, level: float = 0.0) -> Array:
    """Return the mean over seeds of the distance to `level` at the last round, method minus baseline."""
    distance = np.abs(method - level) - np.abs(_need(baseline) - level)
    return distance[..., -1].mean(axis=-1)


def mean_ratio(method: Array, baseline: Array | None) -> Array:
    """Return the mean over seeds and rounds of the method divided by the baseline's."""
    return method.mean(axis=(-2, -1)) / _need(baseline).mean(axis=(-2, -1))


def median_ratio(method: Array, baseline: Array | None) -> Array:
    """Return the median over seeds and rounds of the method divided by the baseline's: for times, which have tails."""
    return np.median(method, axis=(-2, -1)) / np.median(_need(baseline), axis=(-2, -1))


def final_ratio(method: Array, baseline: Array | None) -> Array:
    """Return the mean over seeds at the last round, divided by the baseline's."""
    return method[..., -1].mean(axis=-1) / _need(baseline)[..., -1].mean(axis=-1)


STATISTICS: dict[str, Statistic] = {
    function.__name__.replace("_", "-"): function
    for function in (
        final_difference,
        mean_difference,
        share_of_steps_below,
        share_above,
        final_mean,
        mean_level,
        spread_difference,
        deviation_difference,
        mean_ratio,
        median_ratio,
        final_ratio,
    )
}


def find_statistic(name: str) -> Statistic:
    """Return a statistic by name; raise PlumblineError if there is none."""
    if name not in STATISTICS:
        raise unknown("statistic", name, STATISTICS)
    return STATISTICS[name]


def paired_bootstrap(
    statistic: Statistic, method: Array, baseline: Array | None, name: str, **options: Any
) -> Interval:
    """Return a statistic with its percentile bootstrap interval over seeds.

    Seeds are drawn with replacement, a seed's method and baseline runs together: they share design and noise.

    Args:
        statistic: of `... x seeds x rounds` arrays.
        method: `seeds x rounds`.
        baseline: the same seeds and rounds, or None.
        name: what the draw is seeded by, so that a claim's interval is the same each time.
        options: of the statistic.

    Returns:
        The value, and the interval of level 0.95; NaN bounds with fewer than two seeds.
    """
    value = float(statistic(method, baseline, **options))
    seeds = len(method)
    if seeds < 2:
        return Interval(value, np.nan, np.nan)

    def of_drawn(drawn: Array) -> Array:
        rows = drawn.astype(int)
        return statistic(method[rows], None if baseline is None else baseline[rows], **options)

    # `drawn` arrives as `batch x seeds` row numbers: scipy resamples them along the last axis.
    result = bootstrap(
        (np.arange(seeds),),
        lambda drawn, axis: of_drawn(np.asarray(drawn)),
        n_resamples=RESAMPLES,
        batch=1_000,
        vectorized=True,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(stream_seed(name, 0, "bootstrap")),
    )
    return Interval(value, float(result.confidence_interval.low), float(result.confidence_interval.high))


def mean_and_standard_error(values: Array) -> tuple[Array, Array]:
    """Return mean and standard error over the first axis; the error is 0 with one seed, and means nothing then."""
    seeds = len(values)
    spread = np.std(values, axis=0, ddof=1) if seeds > 1 else np.zeros(values.shape[1:])
    return np.mean(values, axis=0), spread / np.sqrt(seeds)


def mean_interval(values: Array, level: float = 0.7) -> tuple[Array, Array, Array]:
    """Return the mean over the first axis between the ends of its Student interval of `level`: low, mean, high.

    LOCBO's figures show intervals of level .7.
    """
    mean, error = mean_and_standard_error(values)
    reach = error * (student.ppf((1 + level) / 2, len(values) - 1) if len(values) > 1 else 0.0)
    return mean - reach, mean, mean + reach


def median_interval(values: Array) -> tuple[Array, Array, Array]:
    """Return the median over the first axis between the ends of its bootstrap interval: low, median, high.

    Args:
        values: `seeds x rounds`; whole seeds are drawn.
    """
    seeds = len(values)
    rng = np.random.default_rng(stream_seed("median", seeds, "bootstrap"))
    medians = np.nanmedian(values[rng.integers(seeds, size=(1_000, seeds))], axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(medians, [tail, 1 - tail], axis=0)
    return low, np.nanmedian(values, axis=0), high
