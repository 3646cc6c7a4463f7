"""What forecasts should be, what they are, and how sure that is.

If the forecasts are right, their errors in units of their standard deviations (z) are independent standard Gaussians,
and their values of the predictive distribution function (PIT) are uniform; Dawid (1984).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import kstest, kstwo

from plumbline.analysis.diagnosis.forecasts import Forecasts
from plumbline.statistics.exact import Share
from plumbline.statistics.inference import CONFIDENCE, Inference
from plumbline.statistics.means import Mean
from plumbline.statistics.multiple_tests import holm
from plumbline.statistics.rank_correlation import RankCorrelation
from plumbline.statistics.root_mean_square import RootMeanSquare

Array = NDArray[np.float64]

LEVELS = (0.5, 0.8, 0.95)


class Measure(NamedTuple):
    """A number about forecasts.

    Attributes:
        part: calibration, drift, inputs, coverage, sharpness, or of recalibration `earlier` or `other`.
        name: of the number.
        value, low, high: estimate and 95% interval; infinite ends where there are too few data for one.
        expected: of forecasts that are right; NaN where they may have any.
        p: two-sided, of `expected`; NaN where nothing is tested.
        p_corrected: by Holm's method, over all tests by which forecasts are judged; NaN of others.
    """

    part: str
    name: str
    value: float
    low: float
    high: float
    expected: float = np.nan
    p: float = np.nan
    p_corrected: float = np.nan


def measure(part: str, name: str, found: Inference, expected: float = np.nan) -> Measure:
    """Return what an inference says, with a test of `expected`, where that is a number."""
    p = np.nan if np.isnan(expected) else found.p_two_sided(expected)
    return Measure(part, name, found.value, *found.interval(), expected, p)


BIAS, SPREAD, SHAPE = "mean error / sd", "root mean square error / sd", "distance of PIT from uniform"
CORRELATION = "rank correlation of {} and {} / sd"
GROWTH, SHIFT = CORRELATION.format("round", "|error|"), CORRELATION.format("round", "error")
DENSITY = "negative log density"


def judged(forecasts: Forecasts) -> list[Measure]:
    """Return the numbers that forecasts are judged by, with p-values corrected for all of them together."""
    z, order = forecasts.z, forecasts.round
    found = [
        measure("calibration", BIAS, Mean(z, BIAS), 0.0),
        spread("calibration", z),
        uniformity(forecasts.pit),
        measure("drift", GROWTH, RankCorrelation(np.abs(z), order), 0.0),
        measure("drift", SHIFT, RankCorrelation(z, order), 0.0),
        *(
            measure("inputs", CORRELATION.format(name, "|error|"), RankCorrelation(np.abs(z), values), 0.0)
            for name, values in forecasts.inputs.items()
        ),
    ]
    corrected = holm([one.p for one in found])
    return [one._replace(p_corrected=p) for one, p in zip(found, corrected, strict=True)]


def spread(part: str, z: Array) -> Measure:
    """Return the root mean square of z: by how much standard deviations are too small."""
    return measure(part, SPREAD, RootMeanSquare(z), 1.0)


def uniformity(pit: Array) -> Measure:
    """Return the Kolmogorov-Smirnov distance of PIT values from the uniform distribution.

    The distribution function of `n` values is nowhere farther from that of the population than Kolmogorov's statistic,
    whose quantile is therefore the reach of the interval.
    """
    found = kstest(pit, "uniform")
    reach = kstwo.ppf(CONFIDENCE, len(pit))
    low, high = max(found.statistic - reach, 0.0), min(found.statistic + reach, 1.0)
    return Measure("calibration", SHAPE, float(found.statistic), float(low), float(high), 0.0, float(found.pvalue))


def beside(forecasts: Forecasts) -> Iterator[Measure]:
    """Yield coverage and scores, which describe forecasts; the tests by which they are judged know all of it."""
    z, sd = forecasts.z, forecasts.sd
    for level in LEVELS:
        yield coverage("coverage", z, level)
    yield measure("sharpness", "mean sd", Mean(sd, "sd"))
    expected = float(np.mean(negative_log_density(np.ones_like(z), sd)))  # the mean of z^2 would be 1
    yield measure("sharpness", DENSITY, Mean(negative_log_density(z, sd), DENSITY))._replace(expected=expected)


def coverage(part: str, z: Array, level: float) -> Measure:
    """Return the share of observations in the central intervals of a level."""
    inside = np.abs(z) <= ndtri(0.5 + level / 2)
    return measure(part, f"coverage of {100 * level:.0f}% intervals", Share(inside.astype(np.float64)), level)


def negative_log_density(z: Array, sd: Array) -> Array:
    """Return minus the log density of each forecast at its observation, in nats; lower is better."""
    return 0.5 * np.square(z) + np.log(sd) + 0.5 * np.log(2 * np.pi)
