"""Closed forms against BoTorch's on GPyTorch's model of the same process, their gradients against its own."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from botorch.acquisition import AcquisitionFunction, ExpectedImprovement, LogExpectedImprovement, UpperConfidenceBound
from botorch.acquisition.analytic import LogProbabilityOfImprovement, _log_ei_helper
from exact_gpytorch import gpytorch_model
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import made, somewhere
from torch import Tensor

from plumbline.acquisition.analytic import (
    FAR_BELOW,
    AnalyticAcquisition,
    ClosedForm,
    expected_improvement,
    log_expected_improvement,
    log_probability_of_improvement,
    log_standard_improvement,
    upper_confidence_bound,
)

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.NumericsWarning")

Pair = tuple[Callable[[Tensor], ClosedForm], Callable[[Any, Tensor], AcquisitionFunction]]
UTILITIES: dict[str, Pair] = {
    "ei": (expected_improvement, ExpectedImprovement),
    "logei": (log_expected_improvement, LogExpectedImprovement),
    "pi": (log_probability_of_improvement, LogProbabilityOfImprovement),
    "ucb": (lambda best: upper_confidence_bound(1.5), lambda model, best: UpperConfidenceBound(model, 2.25)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UTILITIES)
@settings(max_examples=25)
@given(
    n=st.integers(1, 20),
    d=st.sampled_from([1, 2, 6, 100]),
    kernel=st.sampled_from(["matern52", "rbf"]),
    ahead=st.sampled_from([-5.0, 0.0, 20.0, 300.0]),
    seed=st.integers(0, 500),
)
def test_values_and_gradients_are_botorchs(name: str, n: int, d: int, kernel: str, ahead: float, seed: int) -> None:
    process = made(n, d, kernel, seed)
    best = torch.tensor(70.0 + ahead, dtype=torch.float64)
    closed_form, theirs = UTILITIES[name]
    X = somewhere(4, 1, d, seed=seed + 1).requires_grad_()
    utility = AnalyticAcquisition(process, closed_form(best))
    value, gradient = utility.value_and_gradient(X.detach())
    torch.testing.assert_close(value, theirs(gpytorch_model(process), best)(X).detach(), rtol=1e-6, atol=1e-7)
    expected = theirs(process.model, best)(X)
    (slope,) = torch.autograd.grad(expected.sum(), X)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(gradient, slope, rtol=1e-7, atol=1e-9)
    assert torch.equal(utility(X.detach()), value)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", UTILITIES)
def test_closed_forms_of_arrays_are_those_of_tensors(name: str) -> None:
    mean, sd = torch.linspace(-40, 40, 81, dtype=torch.float64), torch.linspace(1e-2, 3, 81, dtype=torch.float64)
    closed_form = UTILITIES[name][0](torch.tensor(0.5, dtype=torch.float64))
    for found, expected in zip(closed_form(mean.numpy(), sd.numpy()), closed_form(mean, sd), strict=True):
        torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("name", UTILITIES)
def test_finite_differences_through_automatic_differentiation(name: str) -> None:
    utility = AnalyticAcquisition(
        made(9, 3, "matern52", 2), UTILITIES[name][0](torch.tensor(75.0, dtype=torch.float64))
    )
    X = somewhere(2, 3, 1, 3).requires_grad_()
    assert utility(X).shape == (2, 3)
    assert torch.autograd.gradcheck(utility, (X,), rtol=1e-4)


@pytest.mark.parametrize("name", UTILITIES)
def test_a_recalibrated_deviation_counts(name: str) -> None:
    process = made(8, 2, "rbf", 3)
    X = somewhere(5, 1, 2)
    best = torch.tensor(78.0, dtype=torch.float64)
    wide = AnalyticAcquisition(replace(process, deviation=2.5), UTILITIES[name][0](best))
    posterior = gpytorch_model(process).posterior(X)
    mean, sd = posterior.mean.detach().flatten(), 2.5 * posterior.variance.detach().sqrt().flatten()
    torch.testing.assert_close(wide(X), UTILITIES[name][0](best)(mean, sd)[0], rtol=1e-6, atol=1e-9)
    assert torch.autograd.gradcheck(wide, (X.clone().requires_grad_(),), rtol=1e-4)


@pytest.mark.parametrize("name", ["logei", "pi"])
def test_logarithms_neither_underflow_nor_lose_their_gradient(name: str) -> None:
    utility = AnalyticAcquisition(made(10, 2, "rbf", 4), UTILITIES[name][0](torch.tensor(1e4, dtype=torch.float64)))
    value, gradient = utility.value_and_gradient(somewhere(6, 1, 2))
    assert torch.isfinite(value).all()
    assert (gradient.abs().amax((-2, -1)) > 0).all()


@given(u=st.one_of(st.floats(-3.0, 5.0), st.floats(-1e9, -3.0), st.sampled_from([0.0, -1.0, FAR_BELOW, -1e150])))
def test_the_logarithm_of_standard_improvement_is_botorchs_at_every_score(u: float) -> None:
    expected = float(_log_ei_helper(torch.tensor(u, dtype=torch.float64)))
    assert float(log_standard_improvement(np.array(u))) == pytest.approx(expected, rel=1e-11, abs=1e-11)
