"""Recalibrators: maps of levels and scales of the standard deviation from forecast CDF values; CAL, section 3.3."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, minimize_scalar
from scipy.special import ndtr, ndtri

from plumbline.forecasts.calibration_score import empirical_level
from plumbline.models.gp.fit import StandardisedData, fitted
from plumbline.models.gp.likelihood import NOTHING_KNOWN
from plumbline.models.gp.maximum import Unknowns
from plumbline.models.gp.priors import Hyperparameter
from plumbline.models.standardisation import identity

Array = NDArray[np.float64]
LevelMap = Callable[[Array], Array]
Recalibrator = Literal["gp", "isotonic", "none"]

SCALE_BOUNDS = (0.1, 10.0)
"""Least and greatest factor of a standard deviation, so that a few forecasts cannot make it vanish or explode."""

_PROCESS = Unknowns(
    noise=Hyperparameter(1, 1e-2, low=1e-4, high=0.25),
    outputscale=Hyperparameter(1, 0.1, low=1e-3, high=1.0),
    lengthscale=Hyperparameter(1, 0.3, low=0.2, high=5.0),
    known=NOTHING_KNOWN,
    constant=False,
)
_LEVELS: Array = np.arange(1, 100) / 100
_SCORES: Array = ndtri(_LEVELS)
_LOG_SCALES: Array = np.log(np.geomspace(*SCALE_BOUNDS, 47))


def recalibration_set(pit: Array) -> tuple[Array, Array]:
    """Return a recalibrator's training pairs `(F_t, phat(F_t))`; CAL, Algorithm 3, step 1.

    Args:
        pit: `n` CDF values of forecasts at their outcomes.

    Returns:
        Two arrays of `n`, sorted by the first.
    """
    values = np.sort(pit)
    return values, empirical_level(values, values)


def gp_level_map(pit: Array) -> LevelMap:
    """Return a Gaussian process regression of `phat(p)` on `p`, the recalibrator of CAL.

    Its prior mean is the identity: without evidence the forecast is unchanged. Hyperparameters are by maximum
    likelihood, with a lengthscale of at least 0.2, since a map of levels is smooth. If all CDF values lie at the ends,
    or in the middle, other levels have no evidence, and the correction is small.
    """
    p, phat = recalibration_set(pit)
    data = StandardisedData(torch.from_numpy(p).unsqueeze(-1), torch.from_numpy(phat - p), identity(1))
    process = fitted(data, "rbf", _PROCESS)

    def level_map(levels: Array) -> Array:
        mean, _ = process.posterior_moments(torch.from_numpy(levels).unsqueeze(-1), joint=False)
        return np.clip(levels + mean.numpy(), 0.0, 1.0)

    return level_map


def isotonic_level_map(pit: Array) -> LevelMap:
    """Return the isotonic regression of `phat(p)` on `p`, with `R(0) = 0` and `R(1) = 1`; Kuleshov et al. (2018)."""
    p, phat = recalibration_set(pit)
    knots, starts = np.unique(np.concatenate([[0.0], p, [1.0]]), return_index=True)
    ends = np.concatenate([[0.0], phat, [1.0]])
    sizes = np.diff(np.append(starts, len(ends)))
    fitted = isotonic_regression(np.add.reduceat(ends, starts) / sizes, weights=sizes).x
    # Forecasts within rounding of 1 are pooled with the end point, which must remain 1.
    return lambda levels: np.where(levels < 1.0, np.interp(levels, knots, fitted), 1.0)


def identity_level_map(pit: Array) -> LevelMap:
    """Return the identity."""
    return lambda levels: levels


LEVEL_MAPS: dict[Recalibrator, Callable[[Array], LevelMap]] = {
    "gp": gp_level_map,
    "isotonic": isotonic_level_map,
    "none": identity_level_map,
}


def sd_scale(level_map: LevelMap) -> float:
    """Return the factor of the standard deviation that makes a Gaussian forecast agree best with its recalibration.

    CAL rescales sigma "such that the new CDF is calibrated". A Gaussian with the same mean and `s` times the standard
    deviation has CDF `Phi(ndtri(p) / s)` where that of the forecast is `p` and the recalibrated one `R(p)`. We choose
    `s` by least squares over levels .01, ..., .99; it is the same at every x, because `R` acts on levels alone.
    """
    target = level_map(_LEVELS)

    def mismatch(log_scale: float | Array) -> Array:
        return np.square(ndtr(_SCORES * np.exp(-np.asarray(log_scale))[..., None]) - target).sum(axis=-1)

    # The mismatch may have several minima: bracket the lowest on a grid, then refine it.
    best = int(np.argmin(mismatch(_LOG_SCALES)))
    low, high = _LOG_SCALES[max(best - 1, 0)], _LOG_SCALES[min(best + 1, len(_LOG_SCALES) - 1)]
    return float(np.exp(minimize_scalar(mismatch, bounds=(low, high), method="bounded").x))


def recalibrated_scale(pit: Array, recalibrator: Recalibrator) -> float:
    """Return the factor of the standard deviation learnt from the CDF values `pit`; 1 without evidence."""
    if recalibrator == "none" or len(pit) == 0:
        return 1.0
    return sd_scale(LEVEL_MAPS[recalibrator](np.asarray(pit)))
