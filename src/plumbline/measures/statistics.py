"""Statistics over seeds, with bootstrap intervals that keep the pairs together."""

import inspect
import warnings
from collections.abc import Callable, Iterable
from functools import partial
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


def mean(values: Array, axis: int | tuple[int, ...]) -> Array:
    """Return the mean over `axis` of what there is: a round without a forecast does not blank the run."""
    return _known(np.mean, np.nanmean, values, axis)


def median(values: Array, axis: int | tuple[int, ...]) -> Array:
    """Return the median over `axis` of what there is."""
    return _known(np.median, np.nanmedian, values, axis)


def _known(whole: Callable[..., Any], known: Callable[..., Any], values: Array, axis: Any) -> Array:
    """Return `whole` of values without gaps, `known` of those with some, NaN where there is nothing."""
    if not np.isnan(values).any():
        return whole(values, axis=axis)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of an empty slice, which is NaN
        return known(values, axis=axis)


def _need(baseline: Array | None) -> Array:
    if baseline is None:
        raise PlumblineError("this statistic compares with a `baseline`: name one in the claim's test")
    return baseline


def final_difference(method: Array, baseline: Array | None) -> Array:
    """Return the mean over seeds of method minus baseline at the last round; `... x seeds x rounds` in."""
    return mean((method - _need(baseline))[..., -1], -1)


def mean_difference(method: Array, baseline: Array | None) -> Array:
    """Return the mean over seeds and rounds of method minus baseline: who is ahead, on average over the run."""
    return mean(method - _need(baseline), (-2, -1))


def share_of_steps_below(method: Array, baseline: Array | None) -> Array:
    """Return the share of rounds at which the mean over seeds is lower than the baseline's."""
    return (mean(method, -2) < mean(_need(baseline), -2)).mean(axis=-1)


def share_above(method: Array, baseline: Array | None, level: float = 0.0) -> Array:
    """Return the share of seeds that end above `level`."""
    last = method[..., -1]
    return mean(np.where(np.isnan(last), np.nan, last > level), -1)


def final_mean(method: Array, baseline: Array | None) -> Array:
    """Return the mean over seeds at the last round."""
    return mean(method[..., -1], -1)


def mean_level(method: Array, baseline: Array | None) -> Array:
    """Return the mean over seeds and rounds."""
    return mean(method, (-2, -1))


def spread_difference(method: Array, baseline: Array | None) -> Array:
    """Return the standard deviation over seeds at the last round, method minus baseline: who is steadier."""
    ours, theirs = (_known(np.std, np.nanstd, values[..., -1], -1) for values in (method, _need(baseline)))
    return ours - theirs


def deviation_difference(method: Array, baseline: Array | None, level: float = 0.0) -> Array:
    """Return the mean over seeds of the distance to `level` at the last round, method minus baseline."""
    distance = np.abs(method - level) - np.abs(_need(baseline) - level)
    return mean(distance[..., -1], -1)


def mean_ratio(method: Array, baseline: Array | None) -> Array:
    """Return the mean over seeds and rounds of the method divided by the baseline's."""
    return mean(method, (-2, -1)) / mean(_need(baseline), (-2, -1))


def median_ratio(method: Array, baseline: Array | None) -> Array:
    """Return the median over seeds and rounds of the method divided by the baseline's: for times, which have tails."""
    return median(method, (-2, -1)) / median(_need(baseline), (-2, -1))


def final_ratio(method: Array, baseline: Array | None) -> Array:
    """Return the mean over seeds at the last round, divided by the baseline's."""
    return mean(method[..., -1], -1) / mean(_need(baseline)[..., -1], -1)


def consistent_wins(method: Array, baseline: Array | None) -> Array:
    """Return the share of seeds that one of both wins wherever it is compared: the share of the one with more.

    A round (or a task, see `ClaimTest`) has a share of seeds in which the method is above the baseline, ties by half.
    The least of them is the method's, and one minus the greatest the baseline's. Well above one half, one of both is
    the better one throughout; one half and less, neither is.
    """
    gap = method - _need(baseline)
    shares = mean(np.where(np.isnan(gap), np.nan, 0.5 + 0.5 * np.sign(gap)), -2)
    return np.maximum(shares.min(axis=-1), 1 - shares.max(axis=-1))


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
        consistent_wins,
    )
}


ALONE = ("share-above", "final-mean", "mean-level")
"""Those of a method alone; all others need a baseline."""


def find_statistic(name: str) -> Statistic:
    """Return a statistic by name; raise PlumblineError if there is none."""
    if name not in STATISTICS:
        raise unknown("statistic", name, STATISTICS)
    return STATISTICS[name]


def check_statistic(name: str, options: Iterable[str], baseline: bool) -> None:
    """Raise PlumblineError where there is no such statistic, it has no such option, or it needs a baseline."""
    parameters = inspect.signature(find_statistic(name)).parameters
    allowed = list(parameters)[2:]
    for option in options:
        if option not in allowed:
            raise unknown(f"option of statistic {name!r}", option, allowed)
    if name not in ALONE and not baseline:
        raise PlumblineError(f"statistic {name!r} compares with a `baseline`: name one")


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
    """Return mean and standard error over the first axis of what there is; the error is 0 with one value, and means
    nothing then."""
    seeds = np.sum(~np.isnan(values), axis=0)
    spread = _known(partial(np.std, ddof=1), partial(np.nanstd, ddof=1), values, 0) if len(values) > 1 else np.nan
    return mean(values, 0), np.where(seeds > 1, spread, 0.0) / np.sqrt(np.maximum(seeds, 1))


def mean_interval(values: Array, level: float = 0.7) -> tuple[Array, Array, Array]:
    """Return the mean over the first axis between the ends of its Student interval of `level`: low, mean, high.

    LOCBO's figures show intervals of level .7.
    """
    middle, error = mean_and_standard_error(values)
    seeds = np.sum(~np.isnan(values), axis=0)
    reach = error * np.where(seeds > 1, student.ppf((1 + level) / 2, np.maximum(seeds - 1, 1)), 0.0)
    return middle - reach, middle, middle + reach


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
