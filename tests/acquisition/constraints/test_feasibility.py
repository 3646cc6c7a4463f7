"""Constrained expected improvement against BoTorch's on the same processes, its gradient against autograd's."""

import pytest
import torch
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement, LogProbabilityOfFeasibility
from botorch.models import ModelListGP
from exact_gpytorch import gpytorch_model
from hypothesis import given, settings
from hypothesis import strategies as st
from outcome_cases import ROLES, made, somewhere
from torch import Tensor

from plumbline.acquisition.constraints.feasibility import (
    SumOverOutcomes,
    log_constrained_improvement,
    log_probability_of_zero,
)
from plumbline.models.gp.process import GP


def botorchs(processes: list[GP], best: float | None, tolerance: float, X: Tensor) -> Tensor:
    """Return BoTorch's value, with the two sides of the equality as constraints of their own."""
    models = [gpytorch_model(process) for process in processes]
    model = ModelListGP(*models, gpytorch_model(processes[2]))
    holds = {1: (0.0, None), 2: (-tolerance, None), 3: (None, tolerance)}
    if best is None:
        return LogProbabilityOfFeasibility(model, holds)(X)
    return LogConstrainedExpectedImprovement(model, best, 0, holds)(X)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    n=st.integers(1, 15),
    d=st.sampled_from([1, 2, 6]),
    best=st.sampled_from([None, 15.0, 20.0, 40.0]),
    tolerance=st.sampled_from([0.0, 0.01, 1.0]),
    shift=st.sampled_from([0.0, -30.0]),
    seed=st.integers(0, 300),
)
@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.NumericsWarning")
def test_values_and_gradients_are_botorchs(
    n: int, d: int, best: float | None, tolerance: float, shift: float, seed: int
) -> None:
    processes, X = made(n, d, seed, shift), somewhere(4, 1, d, seed=seed + 1).requires_grad_()
    utility = log_constrained_improvement(processes, ROLES, None if best is None else X.new_tensor(best), tolerance)
    expected = botorchs(processes, best, tolerance, X)
    (slope,) = torch.autograd.grad(expected.sum(), X)
    value, gradient = utility.value_and_gradient(X.detach())
    torch.testing.assert_close(value, expected.detach(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(gradient, slope, rtol=1e-5, atol=1e-5 * (1 + float(slope.abs().max())))
    torch.testing.assert_close(utility(X.detach()), value, rtol=1e-12, atol=1e-12)


def test_an_equality_is_the_slides_two_inequalities() -> None:
    """At tolerance zero it is at most a quarter, wherever the mean is zero."""
    mean, sd = torch.tensor([0.0, 0.0, 3.0]).double(), torch.tensor([0.1, 2.0, 0.1]).double()
    value, grad_mean, _ = log_probability_of_zero(0.0)(mean, sd)
    assert value[:2].exp().tolist() == pytest.approx([0.25, 0.25])
    assert grad_mean[:2].tolist() == [0.0, 0.0]
    assert value[2] < -400


def test_far_from_feasible_it_neither_underflows_nor_is_flat() -> None:
    """Both constraints fail by hundreds of deviations: a search can go on."""
    utility = log_constrained_improvement(made(9, 2, shift=-500.0), ROLES, None, 0.01)
    value, gradient = utility.value_and_gradient(somewhere(5, 1, 2, seed=4))
    assert torch.isfinite(value).all()
    assert (gradient.abs().amax((-1, -2)) > 0).all()


def test_finite_differences() -> None:
    utility = log_constrained_improvement(made(9, 3), ROLES, torch.tensor(20.0).double(), 0.01)
    X = somewhere(3, 1, 3, seed=3).requires_grad_()
    assert torch.autograd.gradcheck(utility, (X,), eps=1e-7, rtol=1e-3, atol=1e-4)


def test_an_outcome_without_a_part_does_not_count() -> None:
    processes, X = made(9, 2), somewhere(3, 1, 2)
    feasibility = log_constrained_improvement(processes, ROLES, None, 0.01)
    assert torch.equal(SumOverOutcomes(processes[1:], feasibility.parts[1:])(X), feasibility(X))
