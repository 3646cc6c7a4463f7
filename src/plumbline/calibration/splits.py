"""Predictive CDF values of the data under models that did not see them: CREATE_SPLITS of CAL, Algorithm 4."""

from collections.abc import Callable, Iterator
from typing import Literal

import torch
from botorch.cross_validation import efficient_loo_cv
from botorch.models import SingleTaskGP
from torch import Tensor
from torch.special import ndtr

from plumbline.models.exact import whitened_residuals

Splits = Literal["leave-one-out", "time-series"]
Fit = Callable[[Tensor, Tensor], SingleTaskGP]

FIRST_FORECAST = 2
"""Observations that a time-series split starts from: fewer cannot be standardised."""


def leave_one_out(model: SingleTaskGP) -> Tensor:
    """Return the `n` CDF values of leave-one-out forecasts at the model's hyperparameters, from one inverse.

    Rasmussen & Williams (2006), eq. 5.12; the model's mean and standard deviation of the outcomes are kept too.
    """
    forecasts = efficient_loo_cv(model)
    mean, sd = forecasts.posterior.mean, forecasts.posterior.variance.sqrt()
    return ndtr((forecasts.observed_Y - mean) / sd).flatten().detach()


def time_series(model: SingleTaskGP) -> Tensor:
    """Return the CDF values of one-step-ahead forecasts at the model's hyperparameters, in the order of the data.

    With `L L' = K + s2n I` the forecast of `y_i` from the earlier ones has standard score `(L^-1 (y - mean))_i`, so
    one Cholesky factor serves all splits. The model's mean and standard deviation of the outcomes, later ones included,
    are kept.
    """
    _, scores = whitened_residuals(model)
    return ndtr(scores[FIRST_FORECAST:]).detach()


def _folds(n: int, splits: Splits) -> Iterator[tuple[Tensor, int]]:
    """Yield (indices of the training rows, index of the row to forecast)."""
    rows = torch.arange(n)
    for i in range(0 if splits == "leave-one-out" else FIRST_FORECAST, n):
        yield (rows[rows != i] if splits == "leave-one-out" else rows[:i]), i


def refitted(fit: Fit, X: Tensor, Y: Tensor, splits: Splits) -> Tensor:
    """Return the CDF values of forecasts by models whose hyperparameters are fitted to each training split.

    Args:
        fit: returns a model fitted to the `X` and `Y` it is given.
        X: `n x d`.
        Y: `n x 1`.
        splits: how to cut the data.
    """
    values = []
    for train, i in _folds(len(X), splits):
        model = fit(X[train], Y[train])
        with torch.no_grad():
            posterior = model.posterior(X[i : i + 1], observation_noise=True)
            values.append(ndtr((Y[i] - posterior.mean) / posterior.variance.sqrt()).flatten())
    return torch.cat(values) if values else torch.empty(0, dtype=Y.dtype)


def forecast_cdf(model: SingleTaskGP, splits: Splits) -> Tensor:
    """Return the CDF values of the model's own data under `splits`, in closed form at its hyperparameters."""
    return leave_one_out(model) if splits == "leave-one-out" else time_series(model)
