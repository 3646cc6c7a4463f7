"""Bands about lines over seeds: four kinds, in words and in numbers."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from plumbline.statistics.over_seeds import mean_and_standard_error, mean_interval, median_interval

Array = NDArray[np.float64]

Band = tuple[Array, Array, Array]
"""Lower edge, middle and upper edge."""

BandKind = Literal["quantiles", "median-interval", "mean-error", "mean-interval"]

LEVEL = 0.7
"""Of the interval about a mean: that of LOCBO's figures."""


def band(values: Array, kind: BandKind, quantiles: tuple[float, float]) -> Band:
    """Return the band about `values` over their first axis, the seeds.

    Args:
        values: `seeds x rounds`.
        kind: of the band.
        quantiles: lower and upper one, of the kind of that name.
    """
    if kind == "quantiles":
        low, middle, high = np.nanquantile(values, [quantiles[0], 0.5, quantiles[1]], axis=0)
        return low, middle, high
    if kind == "median-interval":
        return median_interval(values)
    if kind == "mean-interval":
        return mean_interval(values, LEVEL)
    mean, error = mean_and_standard_error(values)
    return mean - error, mean, mean + error


def in_words(kind: BandKind, quantiles: tuple[float, float]) -> str:
    """Return what a line and its band show: `mean and one standard error`."""
    low, high = (f"{share:.0%}" for share in quantiles)
    return {
        "quantiles": f"median and {low} to {high} quantiles",
        "median-interval": "median and its 95% interval",
        "mean-error": "mean and one standard error",
        "mean-interval": f"mean and its {LEVEL:.0%} interval",
    }[kind]
