"""Closed forms against models that really did not see the row they forecast."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from torch.special import ndtr

from plumbline.calibration.splits import FIRST_FORECAST, forecast_cdf, leave_one_out, refitted, time_series
from plumbline.models.exact import ModelOptions, fit_gp, make_gp, make_kernel, make_likelihood

BOUNDS = torch.tensor([[-3.0, 0.0], [5.0, 20.0]], dtype=torch.float64)
OPTIONS = [
    ModelOptions(),
    ModelOptions(kernel="rbf", priors="none"),
    ModelOptions(priors="conformal", ard=False),
]


def data(n: int = 10) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(7)
    U = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    Y = 300 + 40 * torch.sin(5 * U[:, :1] + U[:, 1:]) + 4 * torch.randn(n, 1, generator=generator, dtype=torch.float64)
    return BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * U, Y


def some_model(options: ModelOptions, n: int = 10) -> SingleTaskGP:
    """A model at hyperparameters that are nobody's optimum."""
    model = make_gp(*data(n), BOUNDS, options)
    base = getattr(model.covar_module, "base_kernel", model.covar_module)
    base.lengthscale = torch.linspace(0.3, 0.5, base.lengthscale.numel()).double().reshape(base.lengthscale.shape)
    if options.priors != "botorch":
        model.covar_module.outputscale = 1.7
    model.likelihood.noise = 0.04
    model.mean_module.initialize(constant=0.2)
    return model.eval()


def folds(n: int, splits: str) -> Iterator[tuple[list[int], int]]:
    for i in range(n):
        if splits == "leave-one-out":
            yield [j for j in range(n) if j != i], i
        elif i >= FIRST_FORECAST:
            yield list(range(i)), i


def brute_force(model: SingleTaskGP, options: ModelOptions, splits: str) -> list[float]:
    """Condition a new model on each training split, at the hyperparameters and in the units of `model`."""
    X, Y = data(len(model.train_targets))
    U, z = (X - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0]), (Y - Y.mean()) / Y.std()
    values = []
    for train, i in folds(len(X), splits):
        fold = SingleTaskGP(
            U[train],
            z[train],
            covar_module=make_kernel(2, options),
            likelihood=make_likelihood(options),
            outcome_transform=None,
        )
        for part in ("covar_module", "likelihood", "mean_module"):
            getattr(fold, part).load_state_dict(getattr(model, part).state_dict())
        with torch.no_grad():
            posterior = fold.eval().posterior(U[i : i + 1], observation_noise=True)
        values.append(ndtr((z[i] - posterior.mean) / posterior.variance.sqrt()).item())
    return values


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("splits", ["leave-one-out", "time-series"])
def test_closed_forms_are_those_of_models_that_did_not_see_the_row(options: ModelOptions, splits: str) -> None:
    model = some_model(options)
    found = forecast_cdf(model, splits)
    expected = brute_force(model, options, splits)
    assert found.dtype == torch.float64
    assert not found.requires_grad
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-8, rtol=0)
    assert np.ptp(expected) > 0.1  # a test on constants would show nothing


@pytest.mark.parametrize("splits", ["leave-one-out", "time-series"])
def test_closed_forms_hold_for_a_fitted_model(splits: str) -> None:
    options = ModelOptions()
    model = fit_gp(*data(), BOUNDS, options)
    expected = brute_force(model, options, splits)
    np.testing.assert_allclose(forecast_cdf(model, splits).numpy(), expected, atol=1e-8, rtol=0)


def test_by_name() -> None:
    model = some_model(ModelOptions())
    assert torch.equal(forecast_cdf(model, "leave-one-out"), leave_one_out(model))
    assert torch.equal(forecast_cdf(model, "time-series"), time_series(model))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_lengths(n: int) -> None:
    model = some_model(ModelOptions(), n)
    assert leave_one_out(model).shape == (n,)
    assert time_series(model).shape == (n - FIRST_FORECAST,)


@pytest.mark.parametrize("splits", ["leave-one-out", "time-series"])
def test_refitted_is_a_loop_of_fits(splits: str) -> None:
    X, Y = data(6)

    def fit(X: torch.Tensor, Y: torch.Tensor) -> SingleTaskGP:
        return fit_gp(X, Y, BOUNDS, ModelOptions())

    expected = []
    for train, i in folds(6, splits):
        posterior = fit(X[train], Y[train]).posterior(X[i : i + 1], observation_noise=True)
        expected.append(ndtr((Y[i] - posterior.mean) / posterior.variance.sqrt()).item())
    found = refitted(fit, X, Y, splits)
    assert not found.requires_grad
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("splits", ["leave-one-out", "time-series"])
def test_refitted_never_shows_the_row_it_forecasts(splits: str) -> None:
    X, Y = data(6)
    seen = []

    def fit(X: torch.Tensor, Y: torch.Tensor) -> SingleTaskGP:
        seen.append([row.tolist() for row in X])
        return make_gp(X, Y, BOUNDS, ModelOptions()).eval()

    values = refitted(fit, X, Y, splits)
    expected = [[X[j].tolist() for j in train] for train, _ in folds(6, splits)]
    assert seen == expected
    assert len(values) == len(expected)


def test_too_few_rows_for_a_forecast_give_none() -> None:
    X, Y = data(2)
    values = refitted(lambda X, Y: make_gp(X, Y, BOUNDS, ModelOptions()).eval(), X, Y, "time-series")
    assert values.shape == (0,)
    assert values.dtype == torch.float64
