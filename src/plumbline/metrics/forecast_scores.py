"""Scores of forecasts, and their calibration."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from plumbline.forecasts.calibration_score import LEVELS
from plumbline.metrics.registry import METRICS, Array, Metric, enter, of_trials


def _column(name: str) -> Callable[[pd.DataFrame], Array]:
    return lambda rows: rows[name].to_numpy(dtype=np.float64)


for _name, _summary, _streamed in (
    ("predicted_mean", "mean that was forecast of the observation", False),
    ("predicted_sd", "standard deviation that was forecast of the observation", False),
    ("pit", "forecast probability of at most the observation", False),
    ("nll", "negative log density that was forecast at the observation", True),
    ("crps", "continuous ranked probability score of the forecast", True),
):
    METRICS[_name] = Metric(_name, _summary, (_name,), "query", _column(_name), streamed=_streamed)


def calibration_scores(pit: Array) -> Array:
    """Return the calibration score of all forecasts so far of one trial; NaN where there is none of this evaluation."""
    there = ~np.isnan(pit)
    counts = np.cumsum(pit[there, None] <= LEVELS, axis=0)
    levels = counts / np.arange(1, len(counts) + 1)[:, None]
    found = np.full(len(pit), np.nan)
    found[there] = np.sum((LEVELS - levels) ** 2, axis=1)
    return found


@enter("running", "pit", streamed=True)
def calibration_score(rows: pd.DataFrame) -> Array:
    """Return the calibration score of all queries so far (CAL, section 5.1)."""
    return of_trials(rows, calibration_scores, rows["pit"].to_numpy(dtype=np.float64))
