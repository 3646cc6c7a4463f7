"""The exactly penalised bound against the slides' program, and its search against a fine grid."""

import pytest
import torch
from outcome_cases import ROLES, made, somewhere
from torch import Tensor

from plumbline.acquisition.constraints.exact_penalty import HARD, ExactPenalty
from plumbline.core.outcomes import Role
from plumbline.models.gp.process import GP

BOX = torch.tensor([[-2.0, -2.0], [3.0, 3.0]], dtype=torch.float64)


def program(processes: list[GP], roles: list[Role], X: Tensor, sqrt_beta: float, rho: float) -> Tensor:
    """Return the slides' objective, with the least slacks, turned round to be maximised: `n x d` to `n`."""
    value = torch.zeros(len(X), dtype=torch.float64)
    for process, role in zip(processes, roles, strict=True):
        mean, variance = process.posterior_moments(X, joint=False)
        wide = sqrt_beta * variance.sqrt()
        if role == "objective":
            value += mean + wide
        elif role == "zero":
            value -= rho * (mean.abs() - wide).clamp_min(0)
        else:  # g <= 0 there is -g >= 0 here
            value -= rho * (-mean - wide).clamp_min(0)
    return value


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.3, 50.0])
@pytest.mark.parametrize("seed", range(3))
def test_values_are_the_slides_program(rho: float, seed: int) -> None:
    processes, X = made(8, 2, seed), somewhere(50, 2, seed=seed + 7)
    utility = ExactPenalty(processes, ROLES, 1.5, rho)
    expected = program(processes, ROLES, X, 1.5, rho)
    torch.testing.assert_close(utility(X.unsqueeze(-2)), expected)
    assert (expected < program(processes, ROLES, X, 1.5, 0.0)).any(), "somewhere a constraint cannot hold"
    assert (expected == program(processes, ROLES, X, 1.5, 0.0)).any(), "somewhere all of them may"


@pytest.mark.parametrize("rho", [0.3, None])
def test_finite_differences_away_from_kinks(rho: float | None) -> None:
    utility, X = ExactPenalty(made(9, 3), ROLES, 2.0, rho), somewhere(6, 1, 3, seed=3).requires_grad_()
    assert torch.autograd.gradcheck(utility, (X,), eps=1e-7, rtol=1e-3, atol=1e-4)


def grid(n: int = 301) -> Tensor:
    line = torch.linspace(-2, 3, n, dtype=torch.float64)
    return torch.cartesian_prod(line, line)


@pytest.mark.parametrize("rho", [1.0, 30.0, None])
@pytest.mark.parametrize("seed", range(4))
def test_polishing_never_loses_and_comes_to_a_local_maximum(rho: float | None, seed: int) -> None:
    utility = ExactPenalty(made(10, 2, seed), ROLES, 1.0, rho)
    X = grid()
    start = X[utility(X.unsqueeze(-2)).argmax()].unsqueeze(0)
    found = utility.polished(start, BOX)
    assert ((BOX[0] <= found) & (found <= BOX[1])).all()
    assert utility(found.unsqueeze(0)) >= utility(start.unsqueeze(0))
    # Nothing near is better by more than rounding.
    near = found + 1e-3 * torch.randn(2000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    near = near.clamp(-2, 3)
    scale = utility.processes[0].standardisation.scale
    assert float(utility(near.unsqueeze(-2)).max() - utility(found.unsqueeze(0))) < 2e-4 * scale


def test_it_goes_along_a_kink() -> None:
    """From a point on the edge of the relaxed region, where a climb along the gradient cannot leave."""
    utility = ExactPenalty(made(10, 2, 1), ROLES, 1.0, None)
    X = grid()
    values = utility(X.unsqueeze(-2))
    good = X[values > values.max() - 2.0 * utility.processes[0].standardisation.scale]
    gains = [float(utility(utility.polished(x[None], BOX)[None]) - utility(x[None, None])) for x in good[::200]]
    assert max(gains) > 0.05 * utility.processes[0].standardisation.scale


def test_an_infinite_rho_pays_for_no_slack_that_can_be_had_for_nothing() -> None:
    """Its maximiser is that of any greater penalty, in which the relaxed constraints hold."""
    processes, X = made(10, 2, 1), grid()
    utility = ExactPenalty(processes, ROLES, 1.0, None)
    best = X[utility(X.unsqueeze(-2)).argmax()].unsqueeze(0)
    found = utility.polished(best, BOX)
    rho = (
        10 * HARD * processes[0].standardisation.scale / min(process.standardisation.scale for process in processes[1:])
    )
    slack = program(processes, ROLES, found, 1.0, 0.0) - program(processes, ROLES, found, 1.0, 1.0)
    assert float(slack) < 1e-6
    assert float(utility(found[None])) == pytest.approx(float(program(processes, ROLES, found, 1.0, 0.0)), abs=1e-2)
    assert float(program(processes, ROLES, found, 1.0, rho)) > float(program(processes, ROLES, best, 1.0, rho)) - 1e-2


def test_constraints_that_cannot_hold_leave_the_least_slack() -> None:
    """Both are at most -25 for certain near the data: what is least bad is found, and nothing is infinite."""
    processes = made(12, 2, 0, shift=-40.0)
    X = grid()
    for rho in (5.0, None):
        utility = ExactPenalty(processes, ROLES, 0.5, rho)
        values = utility(X.unsqueeze(-2))
        assert torch.isfinite(values).all()
        start = X[values.argmax()].unsqueeze(0)
        found = utility.polished(start, BOX)
        assert torch.isfinite(found).all()
        assert utility(found[None]).item() >= values.max().item() - 1e-9 * values.max().abs().item()
