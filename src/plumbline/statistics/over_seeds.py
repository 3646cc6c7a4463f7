"""Statistics over seeds: those that claims are judged by, with what can be inferred of them, and those of figures."""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy  # its parts at their first use: scipy.stats takes longer to import than pandas
from numpy.typing import NDArray
from pydantic import create_model
from scipy.special import stdtrit

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.options import Options, parse
from plumbline.statistics.exact import ConsistentWins, Median, Share
from plumbline.statistics.inference import TAIL, Inference
from plumbline.statistics.means import Mean, Ratio

Array = NDArray[np.float64]
Location = Literal["mean", "median"]


class Sample(NamedTuple):
    """One number per seed of a method on one task, and of a baseline on the same seeds, or None: `n` each."""

    method: Array
    baseline: Array | None


Samples = Sequence[Sample]
"""One sample per task; statistics say whether they are one sample or stand side by side."""


def pooled(samples: Samples) -> tuple[Array, Array]:
    """Return all seeds of all tasks in one sample of the method and one of the baseline."""
    return np.concatenate([one.method for one in samples]), np.concatenate([_baseline(one) for one in samples])


def alone(samples: Samples) -> Array:
    """Return all seeds of all tasks in one sample of the method."""
    return np.concatenate([one.method for one in samples])


def minus(method: Array, baseline: Array) -> Array:
    """Return the differences, 0 where both are the same: infinite widths too."""
    with np.errstate(invalid="ignore"):
        return np.where(method == baseline, 0.0, method - baseline)


def over(method: Array, baseline: Array) -> Array:
    """Return the ratios, 1 where both are the same: zero or infinite ones too."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(method == baseline, 1.0, method / baseline)


def wins(method: Array, baseline: Array) -> Array:
    """Return 1 where the method's number is higher, 0 where the baseline's is, 1/2 where they tie."""
    return 0.5 + 0.5 * np.sign(minus(method, baseline))


def _baseline(sample: Sample) -> Array:
    assert sample.baseline is not None, "checked by `check_statistic`"
    return sample.baseline


def _located(values: Array, location: Location, name: str) -> Inference:
    return Median(values) if location == "median" else Mean(values, name)


def difference(samples: Samples, location: Location, name: str) -> Inference:
    """Return the mean or the median of method minus baseline, seed by seed."""
    return _located(minus(*pooled(samples)), location, name)


def ratio(samples: Samples, location: Location, name: str) -> Inference:
    """Return the method's mean divided by the baseline's, or the median of the ratios of each seed."""
    method, baseline = pooled(samples)
    return Median(over(method, baseline)) if location == "median" else Ratio(method, baseline, name)


def value(samples: Samples, location: Location, name: str) -> Inference:
    """Return the mean or the median of the method's numbers."""
    return _located(alone(samples), location, name)


def distance_difference(samples: Samples, location: Location, name: str, level: float = 0.0) -> Inference:
    """Return the mean or the median of the distance to `level`, method minus baseline."""
    method, baseline = pooled(samples)
    return _located(minus(np.abs(method - level), np.abs(baseline - level)), location, name)


def spread_difference(samples: Samples, location: Location, name: str) -> Inference:
    """Return the mean or the median distance to the sample's median, method minus baseline: who is steadier.

    Brown & Forsythe (1974), of pairs.
    """
    method, baseline = pooled(samples)
    return _located(minus(np.abs(method - np.median(method)), np.abs(baseline - np.median(baseline))), location, name)


def share_above(samples: Samples, location: Location, name: str, level: float = 0.0) -> Inference:
    """Return the share of seeds whose number is above `level`."""
    return Share((alone(samples) > level).astype(np.float64))


def share_lower(samples: Samples, location: Location, name: str) -> Inference:
    """Return the share of seeds whose number is lower than the baseline's, ties by half: a sign test against .5."""
    return Share(1 - wins(*pooled(samples)))


def share_higher(samples: Samples, location: Location, name: str) -> Inference:
    """Return the share of seeds whose number is higher than the baseline's, ties by half: a sign test against .5."""
    return Share(wins(*pooled(samples)))


def consistent_wins(samples: Samples, location: Location, name: str) -> Inference:
    """Return the share of seeds that one of both is higher in on every task, of the one with more.

    Well above one half, one of both is the better one throughout; one half and less, neither is.
    """
    return ConsistentWins([wins(one.method, _baseline(one)) for one in samples])


Statistic = Callable[..., Inference]

STATISTICS: dict[str, Statistic] = {
    function.__name__.replace("_", "-"): function
    for function in (
        difference,
        ratio,
        value,
        distance_difference,
        spread_difference,
        share_above,
        share_lower,
        share_higher,
        consistent_wins,
    )
}

ALONE = ("value", "share-above")
"""Those of a method alone; all others need a baseline."""

SHARES = ("share-above", "share-lower", "share-higher", "consistent-wins")
"""Those that are counts of seeds: of no other location than theirs."""

TASK_BY_TASK = ("consistent-wins",)
"""Those that look at each task by itself; all others put the seeds of all tasks in one sample."""

LIKENESS = ("consistent-wins",)
"""Those that, below a threshold, say that neither of two methods is better: a likeness, as a range is."""


def find_statistic(name: str) -> Statistic:
    """Return a statistic by name.

    Raises:
        PlumblineError: there is none.
    """
    if name not in STATISTICS:
        raise unknown("statistic", name, STATISTICS)
    return STATISTICS[name]


@cache
def _options_of(name: str) -> type[Options]:
    """Make the model of a statistic's options: the parameters of its function after the first three."""
    parameters = list(inspect.signature(find_statistic(name)).parameters.values())[3:]
    fields: dict[str, Any] = {one.name: (one.annotation, one.default) for one in parameters}
    return create_model(name, __base__=Options, **fields)


def statistic_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Give the options of a statistic their types.

    Raises:
        PlumblineError: no such statistic or option, or a value of another type.
    """
    allowed = _options_of(name).model_fields
    for option in options:
        if option not in allowed:
            raise unknown(f"option of statistic {name!r}", option, allowed)
    return parse(_options_of(name), dict(options), f"option of statistic {name!r}").model_dump()


def check_statistic(name: str, options: Mapping[str, Any], baseline: bool, location: Location = "mean") -> None:
    """Raise PlumblineError for an unknown statistic or option, a lacking baseline, or a median of a count of seeds."""
    statistic_options(name, options)
    if name not in ALONE and not baseline:
        raise PlumblineError(f"statistic {name!r} compares with a `baseline`: name one")
    if name in SHARES and location != "mean":
        raise PlumblineError(f"statistic {name!r} counts seeds, and has no `location: {location}`")


def infer(statistic: str, samples: Samples, location: Location, name: str, options: Mapping[str, Any]) -> Inference:
    """Return the inference on a statistic from samples; `name` seeds the resamples."""
    return find_statistic(statistic)(samples, location, name, **statistic_options(statistic, options))


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


def mean_and_standard_error(values: Array) -> tuple[Array, Array]:
    """Return mean and standard error over the first axis of what there is; of one value the error is 0.

    So a band about single runs has no width. Tables leave such an error out (`known_error`).
    """
    seeds = np.sum(~np.isnan(values), axis=0)
    spread = _known(partial(np.std, ddof=1), partial(np.nanstd, ddof=1), values, 0) if len(values) > 1 else np.nan
    return mean(values, 0), np.where(seeds > 1, spread, 0.0) / np.sqrt(np.maximum(seeds, 1))


def known_error(error: float, seeds: int) -> float:
    """Return a standard error over so many seeds; NaN with fewer than two, of which there is none."""
    return error if seeds > 1 else np.nan


def mean_interval(values: Array, level: float = 0.7) -> tuple[Array, Array, Array]:
    """Return the mean over the first axis between the ends of its Student interval of `level`: low, mean, high.

    LOCBO's figures show intervals of level .7.
    """
    middle, error = mean_and_standard_error(values)
    return student_interval(middle, error, np.sum(~np.isnan(values), axis=0), level)


def student_interval(mean: Array, error: Array, seeds: Array, level: float) -> tuple[Array, Array, Array]:
    """Return means between the ends of their Student intervals of `level`: low, mean, high.

    Args:
        mean: of values, of any shape.
        error: standard errors of the means; of one seed the interval is empty.
        seeds: how many values each mean is of.
        level: of the intervals.
    """
    reach = error * np.where(seeds > 1, stdtrit(np.maximum(seeds - 1, 1), (1 + level) / 2), 0.0)
    return mean - reach, mean, mean + reach


def median_interval(values: Array) -> tuple[Array, Array, Array]:
    """Return the median over the first axis between the ends of its 95% interval by the sign test: low, median, high.

    Those are the values of two ranks, as in `Median`. Fewer than six values have no interval: its ends are NaN.

    Args:
        values: `seeds x rounds`, NaN where there is none.
    """
    ordered = np.sort(values, axis=0)  # NaN last
    known = np.sum(~np.isnan(values), axis=0)
    # The greatest rank, from zero, below which the true median is in at most 2.5% of samples; -1 where there is none.
    rank = scipy.stats.binom.ppf(TAIL, known, 0.5).astype(np.intp) - 1
    low, high = (
        np.where(rank >= 0, np.take_along_axis(ordered, np.where(rank >= 0, place, 0)[np.newaxis], axis=0)[0], np.nan)
        for place in (rank, known - 1 - rank)
    )
    return low, np.nanmedian(values, axis=0), high
