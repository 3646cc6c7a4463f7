"""What recalibration would have done: each forecast is rescaled by what others have taught, and judged again."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from plumbline.analysis.diagnosis.forecasts import Forecasts
from plumbline.analysis.diagnosis.measures import Measure, coverage, measure, negative_log_density, spread
from plumbline.statistics.means import Mean

Array = NDArray[np.float64]
Scale = Callable[[Array], float]
"""The factor of the standard deviation that PIT values teach (`calibrated.recalibration.recalibrated_scale`)."""

FEWEST = 10
"""Forecasts that a factor is learnt from, and that it is judged on."""

FOLDS = 200
"""Up to so many forecasts each is left out by itself, and of more every 200th with it."""

GAIN = "change of negative log density"


def from_earlier(forecasts: Forecasts, scale: Scale, window: int) -> Array:
    """Return the factor that each forecast would have had from at most `window` before it; NaN where there are few.

    Those of its own round are not known when it is made.
    """
    starts = np.searchsorted(forecasts.round, forecasts.round, side="left")
    factors = {int(end): scale(forecasts.pit[max(end - window, 0) : end]) for end in set(starts) if end >= FEWEST}
    return np.array([factors.get(int(end), np.nan) for end in starts])


def from_others(forecasts: Forecasts, scale: Scale) -> Array:
    """Return the factor that each forecast would have from all others, later ones too: leave-one-out."""
    fold = np.arange(len(forecasts.z)) % FOLDS
    factors = [scale(forecasts.pit[fold != one]) for one in range(min(FOLDS, len(fold)))]
    return np.array(factors)[fold]


def replayed(part: str, forecasts: Forecasts, factors: Array) -> Iterator[Measure]:
    """Yield what rescaled forecasts are like, of those that have a factor; nothing where these are few."""
    there = np.isfinite(factors)
    if there.sum() < FEWEST:
        return
    factors, z, sd = factors[there], forecasts.z[there], forecasts.sd[there]
    change = negative_log_density(z / factors, sd * factors) - negative_log_density(z, sd)
    yield measure(part, GAIN, Mean(change, GAIN), 0.0)
    yield spread(part, z / factors)
    yield coverage(part, z / factors, 0.8)
    # Without an interval: factors that are learnt from the same forecasts are no sample.
    yield Measure(part, "mean factor of sd", float(factors.mean()), np.nan, np.nan)
