"""Predictive CDF values of the data under models not trained on them: CREATE_SPLITS of CAL, Algorithm 4."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.special import ndtr

from plumbline.models.failures import FIT_FAILURES
from plumbline.models.gp.process import GP
from plumbline.models.gp.stack import scores_each

Splits = Literal["leave-one-out", "time-series"]
Fit = Callable[[Tensor, Tensor], GP]
FitEach = Callable[[Tensor, Tensor, GP], list[GP | None]]

FIRST_FORECAST = 2
"""Least number of observations that a model is fitted to: fewer cannot be standardised."""


class SplitNotFittedWarning(RuntimeWarning):
    """The fit to a split failed: its forecast uses the hyperparameters of all data."""


def leave_one_out(process: GP) -> Tensor:
    """Return the `n` CDF values of leave-one-out forecasts at the process's hyperparameters, from one inverse.

    With `B = (K + s2n I)^-1` the forecast of `y_i` has variance `1 / B_ii`, and its error is `(B (y - mean))_i / B_ii`;
    Rasmussen & Williams (2006), eq. 5.12. The standardisation is that of all data.
    """
    return ndtr(process.a / process.precision.sqrt())


def time_series(process: GP) -> Tensor:
    """Return the CDF values of one-step-ahead forecasts at the process's hyperparameters, from the third datum on.

    With `L L' = K + s2n I` the forecast of `y_i` from the earlier ones has standard score `(L^-1 (y - mean))_i`, so
    that one Cholesky factor serves all splits. The standardisation is that of all data, later ones included.
    """
    return ndtr(process.whitened[FIRST_FORECAST:])


class _Fold(NamedTuple):
    """One split: the training rows, the forecast row, and its place among the forecasts."""

    train: Tensor
    row: int
    place: int


def _folds(n: int, splits: Splits) -> Iterator[_Fold]:
    rows = torch.arange(n)
    for place, row in enumerate(range(0 if splits == "leave-one-out" else FIRST_FORECAST, n)):
        yield _Fold(rows[rows != row] if splits == "leave-one-out" else rows[:row], row, place)


def refitted(fit: Fit, process: GP, X: Tensor, Y: Tensor, splits: Splits, fit_each: FitEach | None = None) -> Tensor:
    """Return the CDF values of forecasts by models trained on each split; CAL, Algorithm 4, step 3.

    A split whose fit fails (with a warning), or of fewer than two observations, uses the hyperparameters and the
    standardisation of all data: its value is that of the closed form.

    Args:
        fit: returns a process fitted to `X` and `Y`.
        process: the process fitted to all data.
        X: `n x d`.
        Y: `n x 1`.
        splits: kind of the splits.
        fit_each: batched `fit` of m data sets of one size that starts at the hyperparameters of `process`, with None
            where it does not apply; None for no such fit.
    """
    folds = list(_folds(len(X), splits))
    values = torch.full((len(folds),), math.nan, dtype=X.dtype)
    fitted = [fold for fold in folds if len(fold.train) >= FIRST_FORECAST]
    if fit_each is not None and splits == "leave-one-out" and fitted:
        values = _batched(fit_each, process, X, Y, fitted)
    for fold in [fold for fold in fitted if values[fold.place].isnan()]:
        i = fold.row
        try:
            values[fold.place] = _forecast(fit(X[fold.train], Y[fold.train]), X[i : i + 1], Y[i])
        except FIT_FAILURES as error:
            warnings.warn(f"split that forecasts observation {i}: {error}", SplitNotFittedWarning, stacklevel=2)
    left = values.isnan()
    return forecast_cdf(process, splits).where(left, values) if left.any() else values


def _batched(fit_each: FitEach, process: GP, X: Tensor, Y: Tensor, folds: Sequence[_Fold]) -> Tensor:
    """Return the CDF values of forecasts by models of leave-one-out splits that are fitted at once, or NaN."""
    train = torch.stack([fold.train for fold in folds])
    models = fit_each(X[train], Y[train], process)
    values = torch.full((len(folds),), math.nan, dtype=X.dtype)
    found = [i for i, model in enumerate(models) if model is not None]
    if found:
        rows = torch.tensor([folds[i].row for i in found])
        values[found] = ndtr(scores_each([model for model in models if model is not None], X[rows], Y[rows]))
    return values


def _forecast(process: GP, X: Tensor, y: Tensor) -> Tensor:
    """Return the CDF value of an observation `y` (`1`) at `X` (`1 x d`)."""
    mean, variance = process.posterior_moments(X, joint=False)
    return ndtr((y - mean) / (variance + process.noise_variance).sqrt())


def forecast_cdf(process: GP, splits: Splits) -> Tensor:
    """Return the CDF values of the process's own data under `splits`, in closed form at its hyperparameters."""
    return leave_one_out(process) if splits == "leave-one-out" else time_series(process)
