"""Predictive CDF values of the data under models that did not see them: CREATE_SPLITS of CAL, Algorithm 4."""

from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch import Tensor
from torch.special import ndtr

from plumbline.models.exact_process import ExactProcess

Splits = Literal["leave-one-out", "time-series"]
Fit = Callable[[Tensor, Tensor], ExactProcess]

FIRST_FORECAST = 2
"""Observations that a time-series split starts from: fewer cannot be standardised."""


def leave_one_out(process: ExactProcess) -> Tensor:
    """Return the `n` CDF values of leave-one-out forecasts at the process's hyperparameters, from one inverse.

    With `B = (K + s2n I)^-1` the forecast of `y_i` has variance `1 / B_ii`, and its error is `(B (y - mean))_i / B_ii`;
    Rasmussen & Williams (2006), eq. 5.12. The mean and standard deviation of the outcomes are kept too.
    """
    return ndtr(process.a / process.precision.sqrt())


def time_series(process: ExactProcess) -> Tensor:
    """Return the CDF values of one-step-ahead forecasts at the process's hyperparameters, in the order of the data.

    With `L L' = K + s2n I` the forecast of `y_i` from the earlier ones has standard score `(L^-1 (y - mean))_i`, so
    one Cholesky factor serves all splits. The mean and standard deviation of the outcomes, later ones included, are
    kept.
    """
    return ndtr(process.whitened[FIRST_FORECAST:])


def _folds(n: int, splits: Splits) -> Iterator[tuple[Tensor, int]]:
    """Yield (indices of the training rows, index of the row to forecast)."""
    rows = torch.arange(n)
    for i in range(0 if splits == "leave-one-out" else FIRST_FORECAST, n):
        yield (rows[rows != i] if splits == "leave-one-out" else rows[:i]), i


def refitted(fit: Fit, X: Tensor, Y: Tensor, splits: Splits) -> Tensor:
    """Return the CDF values of forecasts by models whose hyperparameters are fitted to each training split.

    Args:
        fit: returns a process fitted to the `X` and `Y` it is given.
        X: `n x d`.
        Y: `n x 1`.
        splits: how to cut the data.
    """
    values = []
    for train, i in _folds(len(X), splits):
        process = fit(X[train], Y[train])
        mean, variance = process.moments(X[i : i + 1], joint=False)
        values.append(ndtr((Y[i] - mean) / (variance + process.noise_variance).sqrt()))
    return torch.cat(values) if values else torch.empty(0, dtype=Y.dtype)


def forecast_cdf(process: ExactProcess, splits: Splits) -> Tensor:
    """Return the CDF values of the process's own data under `splits`, in closed form at its hyperparameters."""
    return leave_one_out(process) if splits == "leave-one-out" else time_series(process)
