"""Closed forms against models that really did not see the row they forecast."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import ModelFittingError
from exact_gpytorch import gpytorch_model
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_operator.utils.errors import NanError, NotPSDError
from torch.special import ndtr

from plumbline.methods.calibrated.splits import (
    FIRST_FORECAST,
    SplitNotFittedWarning,
    forecast_cdf,
    leave_one_out,
    refitted,
    time_series,
)
from plumbline.models.gp.fit import ModelOptions, fit_each, fit_process
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned

BOUNDS = torch.tensor([[-3.0, 0.0], [5.0, 20.0]], dtype=torch.float64)
OPTIONS = ModelOptions(kernel="rbf", priors="none", ard=False)
KERNELS = [("matern52", 2), ("rbf", 2), ("matern52", 1)]


def data(n: int = 10, seed: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    U = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    Y = 300 + 40 * torch.sin(5 * U[:, :1] + U[:, 1:]) + 4 * torch.randn(n, 1, generator=generator, dtype=torch.float64)
    return BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * U, Y


def some_process(kernel: str = "matern52", lengthscales: int = 2, n: int = 10) -> GP:
    """A process at hyperparameters that are nobody's optimum."""
    X, Y = data(n)
    lengthscale = torch.linspace(0.3, 0.5, lengthscales, dtype=torch.float64)
    return conditioned(X, Y, BOUNDS, kernel, Hyperparameters(0.2, X.new_tensor([0.04]), 1.7, lengthscale))


def folds(n: int, splits: str) -> Iterator[tuple[list[int], int]]:
    for i in range(n):
        if splits == "leave-one-out":
            yield [j for j in range(n) if j != i], i
        elif i >= FIRST_FORECAST:
            yield list(range(i)), i


def brute_force(process: GP, splits: str) -> list[float]:
    """Condition GPyTorch's process on each training split, at the hyperparameters and in the units of `process`."""
    values = []
    for train, i in folds(len(process.y), splits):
        fold = gpytorch_model(replace(process, U=process.U[train], y=process.y[train]))
        X = process.standardisation.points(process.U[i : i + 1])
        with torch.no_grad():
            posterior = fold.posterior(X, observation_noise=True)
        y = process.standardisation.location + process.standardisation.scale * process.y[i]
        values.append(ndtr((y - posterior.mean) / posterior.variance.sqrt()).item())
    return values


@pytest.mark.parametrize(("kernel", "lengthscales"), KERNELS)
@pytest.mark.parametrize("splits", ["leave-one-out", "time-series"])
def test_closed_forms_are_those_of_models_that_did_not_see_the_row(kernel: str, lengthscales: int, splits: str) -> None:
    process = some_process(kernel, lengthscales)
    found = forecast_cdf(process, splits)
    expected = brute_force(process, splits)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-8, rtol=0)
    assert np.ptp(expected) > 0.1  # a test on constants would show nothing


@pytest.mark.parametrize("splits", ["leave-one-out", "time-series"])
def test_closed_forms_hold_for_a_fitted_model(splits: str) -> None:
    process = fit_process(*data(), BOUNDS, ModelOptions())
    np.testing.assert_allclose(forecast_cdf(process, splits).numpy(), brute_force(process, splits), atol=1e-8, rtol=0)


def test_by_name() -> None:
    process = some_process()
    assert torch.equal(forecast_cdf(process, "leave-one-out"), leave_one_out(process))
    assert torch.equal(forecast_cdf(process, "time-series"), time_series(process))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_lengths(n: int) -> None:
    process = some_process(n=n)
    assert leave_one_out(process).shape == (n,)
    assert time_series(process).shape == (n - FIRST_FORECAST,)


def fit(X: torch.Tensor, Y: torch.Tensor) -> GP:
    return fit_process(X, Y, BOUNDS, OPTIONS)


@pytest.mark.slow
@settings(max_examples=12)
@given(n=st.integers(3, 9), seed=st.integers(0, 1000), splits=st.sampled_from(["leave-one-out", "time-series"]))
def test_refitted_is_training_on_each_split(n: int, seed: int, splits: str) -> None:
    """By GPyTorch's process at hyperparameters that were fitted without the row that it forecasts."""
    X, Y = data(n, seed)
    expected = []
    for train, i in folds(n, splits):
        posterior = gpytorch_model(fit(X[train], Y[train])).posterior(X[i : i + 1], observation_noise=True)
        expected.append(ndtr((Y[i] - posterior.mean) / posterior.variance.sqrt()).item())
    found = refitted(fit, fit(X, Y), X, Y, splits)
    assert not found.requires_grad
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("splits", ["leave-one-out", "time-series"])
def test_refitted_never_shows_the_row_it_forecasts(splits: str) -> None:
    X, Y = data(6)
    seen = []

    def noted(X: torch.Tensor, Y: torch.Tensor) -> GP:
        seen.append([row.tolist() for row in X])
        return fit(X, Y)

    values = refitted(noted, fit(X, Y), X, Y, splits)
    expected = [[X[j].tolist() for j in train] for train, _ in folds(6, splits)]
    assert seen == expected
    assert len(values) == len(expected)


@pytest.mark.parametrize("error", [ModelFittingError, NotPSDError, NanError])
def test_a_split_without_a_model_keeps_the_hyperparameters_of_all_data(error: type[Exception]) -> None:
    X, Y = data(6)
    process, left_out = fit(X, Y), X[2].tolist()

    def mostly(X: torch.Tensor, Y: torch.Tensor) -> GP:
        if left_out not in X.tolist():
            raise error("not here")
        return fit(X, Y)

    with pytest.warns(SplitNotFittedWarning, match="split that forecasts observation 2: not here"):
        found = refitted(mostly, process, X, Y, "leave-one-out")
    others = [0, 1, 3, 4, 5]
    assert found[2] == leave_one_out(process)[2]
    assert torch.equal(found[others], refitted(fit, process, X, Y, "leave-one-out")[others])


def at_once(X: torch.Tensor, Y: torch.Tensor, near: GP) -> list[GP | None]:
    return fit_each(X, Y, BOUNDS, OPTIONS, near=near)


def test_splits_that_are_fitted_at_once_forecast_as_each_alone() -> None:
    X, Y = data(9)
    process = fit(X, Y)

    def never(X: torch.Tensor, Y: torch.Tensor) -> GP:
        raise AssertionError

    found = refitted(never, process, X, Y, "leave-one-out", at_once)
    torch.testing.assert_close(found, refitted(fit, process, X, Y, "leave-one-out"), rtol=0, atol=1e-4)


def test_a_split_that_is_not_fitted_with_the_others_is_fitted_alone() -> None:
    X, Y = data(6)
    alone = []

    def noted(X: torch.Tensor, Y: torch.Tensor) -> GP:
        alone.append([row.tolist() for row in X])
        return fit(X, Y)

    def but_one(X: torch.Tensor, Y: torch.Tensor, near: GP) -> list[GP | None]:
        return [None if i == 2 else found for i, found in enumerate(at_once(X, Y, near))]

    process = fit(X, Y)
    found = refitted(noted, process, X, Y, "leave-one-out", but_one)
    assert alone == [[X[j].tolist() for j in (0, 1, 3, 4, 5)]]
    torch.testing.assert_close(found, refitted(fit, process, X, Y, "leave-one-out"), rtol=0, atol=1e-4)


def test_splits_of_several_sizes_are_fitted_one_by_one() -> None:
    X, Y = data(6)

    def never(X: torch.Tensor, Y: torch.Tensor, near: GP) -> list[GP | None]:
        raise AssertionError

    process = fit(X, Y)
    found = refitted(fit, process, X, Y, "time-series", never)
    assert torch.equal(found, refitted(fit, process, X, Y, "time-series"))


def test_other_errors_of_a_fit_are_not_swallowed() -> None:
    X, Y = data(4)

    def broken(X: torch.Tensor, Y: torch.Tensor) -> GP:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        refitted(broken, fit(X, Y), X, Y, "leave-one-out")


@pytest.mark.parametrize("n", [1, 2])
def test_splits_of_fewer_than_two_rows_are_not_fitted(n: int) -> None:
    X, Y = data(n)
    process = fit(X, Y)

    def never(X: torch.Tensor, Y: torch.Tensor) -> GP:
        raise AssertionError

    assert torch.equal(refitted(never, process, X, Y, "leave-one-out"), leave_one_out(process))
    assert refitted(never, process, X, Y, "time-series").shape == (0,)
