"""The calibration score of a sequence of forecasts."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVELS: NDArray[np.float64] = np.arange(1, 20) / 20
"""Confidence levels .05, .10, ..., .95 of the calibration score; CAL leaves their number open."""


def empirical_level(pit: ArrayLike, p: ArrayLike) -> NDArray[np.float64]:
    """Return the share of forecasts whose CDF at the observation was at most `p`; CAL, Algorithm 3.

    Args:
        pit: `n` predictive CDF values at the observations (probability integral transforms).
        p: `m` levels.

    Returns:
        `m` shares; those of calibrated forecasts are near `p`.
    """
    return np.searchsorted(np.sort(np.asarray(pit)), np.asarray(p), side="right") / np.size(pit)


def calibration_score(pit: ArrayLike, levels: ArrayLike = LEVELS) -> float:
    """Return `sum_j (p_j - phat_j)^2` over `levels`; CAL, section 5.1. Lower is better, zero perfect."""
    return float(np.sum((np.asarray(levels) - empirical_level(pit, levels)) ** 2))
