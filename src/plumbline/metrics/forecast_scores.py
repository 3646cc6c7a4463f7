"""Scores of forecasts, and their calibration."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from plumbline.forecasts.calibration_score import LEVELS
from plumbline.metrics.registry import METRICS, Array, Better, Metric, enter, of_trials


def _column(name: str) -> Callable[[pd.DataFrame], Array]:
    return lambda rows: rows[name].to_numpy(dtype=np.float64)


SCORES: tuple[tuple[str, str, Better], ...] = (
    ("predicted_mean", "mean that was forecast of the observation", ""),
    ("predicted_sd", "standard deviation that was forecast of the observation", ""),
    ("pit", "forecast probability of at most the observation", ""),
    ("nll", "negative log density that was forecast at the observation", "lower"),
    ("crps", "continuous ranked probability score of the forecast", "lower"),
)
"""Name, summary and better direction of each column of forecasts."""

for _name, _summary, _better in SCORES:
    METRICS[_name] = Metric(_name, _summary, (_name,), "query", _column(_name), bool(_better), _better)


def calibration_scores(pit: Array) -> Array:
    """Return the calibration score of all forecasts so far of one trial; NaN where there is none of this evaluation."""
    there = ~np.isnan(pit)
    counts = np.cumsum(pit[there, None] <= LEVELS, axis=0)
    levels = counts / np.arange(1, len(counts) + 1)[:, None]
    found = np.full(len(pit), np.nan)
    found[there] = np.sum((LEVELS - levels) ** 2, axis=1)
    return found


@enter("running", "pit", streamed=True, better="lower")
def calibration_score(rows: pd.DataFrame) -> Array:
    """Return the calibration score of all queries so far (CAL, section 5.1)."""
    return of_trials(rows, calibration_scores, rows["pit"].to_numpy(dtype=np.float64))
