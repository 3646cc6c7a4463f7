"""Optimisation under constraints: what is improved on, and what is done where nothing is as it should be."""

import warnings
from typing import Any

import pytest
import torch
from situations import BOX, ask, box, objective, rows
from torch import Tensor

from plumbline.acquisition.constraints.feasibility import log_constrained_improvement
from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.outcomes import Outcome, Role
from plumbline.methods.base import Domain, build_method
from plumbline.methods.composed import Round
from plumbline.methods.gp.constrained import ConstrainedMethod, best_feasible
from plumbline.models.gp.fit import ModelOptions, fit_outcomes
from plumbline.spaces.box import Box

ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    "eic": ("eic", {}),
    "epbo": ("epbo", {"rho": 10.0}),
    "epbo-inf": ("epbo", {}),
}
SEARCH = {"search": {"restarts": 2, "raw_samples": 64, "maxiter": 30}, "model": {"priors": "none"}}
ROLES: list[Role] = ["objective", "at_least_zero", "zero"]


def domain(*roles: Role) -> Domain:
    return Domain(Box(BOX), tuple(Outcome(f"{role}-{i}", role) for i, role in enumerate(roles)))


def make(arm: str, *roles: Role, **options: Any) -> ConstrainedMethod:
    name, own = ARMS[arm]
    method = build_method(name, {**SEARCH, **own, **options}, domain(*roles))
    assert isinstance(method, ConstrainedMethod)
    return method


def history(*constraints: Tensor, n: int = 8, value: Tensor | None = None) -> History:
    X = rows(n, 0)
    return History(X, torch.stack([objective(X)[:, 0] if value is None else value, *constraints], -1), n)


def left(X: Tensor) -> Tensor:
    """Return what is at least zero left of the middle of the box."""
    return (2.5 - X[:, 0]) / 3


def asked(method: ConstrainedMethod, seen: History, q: int = 1) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of optimisers that stop at kinks
        X = ask(method, seen, q).X
    assert X.shape == (q, 2)
    assert torch.isfinite(X).all()
    assert ((BOX[0] <= X) & (BOX[1] >= X)).all()
    return X


class TestIncumbent:
    Y = torch.tensor([[5.0, 1.0, 0.5], [3.0, 0.0, 0.01], [2.0, 1.0, -0.005], [9.0, -1e-9, 0.0], [8.0, 1.0, torch.nan]])

    def test_is_the_best_whose_constraints_were_observed_to_hold(self) -> None:
        data = History(rows(5, 0), self.Y.double(), 5)
        for tolerance, best in ((0.01, 3.0), (0.006, 2.0), (1.0, 5.0)):
            found = best_feasible(data, ROLES, tolerance)
            assert found is not None
            assert found.item() == best

    def test_there_is_none_before_the_first(self) -> None:
        assert best_feasible(History(rows(5, 0), self.Y.double(), 5), ROLES, 1e-4) is None


@pytest.mark.parametrize("arm", ARMS)
def test_an_inequality_keeps_queries_in(arm: str) -> None:
    """The objective grows to the right, where the constraint fails: queries end at its edge."""
    X = rows(20, 0)
    seen = History(X, torch.stack([X[:, 0], left(X)], -1), 20)
    x = asked(make(arm, "objective", "at_least_zero"), seen)
    assert x[0, 0].item() == pytest.approx(2.5, abs=0.3)


@pytest.mark.parametrize("arm", ARMS)
def test_an_equality_keeps_queries_on(arm: str) -> None:
    """`x1 = 2.5` must hold, and `x2` is to be great."""
    X = rows(20, 0)
    seen = History(X, torch.stack([X[:, 1], left(X)], -1), 20)
    x = asked(make(arm, "objective", "zero"), seen)
    assert x[0, 0].item() == pytest.approx(2.5, abs=0.3)
    assert x[0, 1].item() > 13 or arm == "eic"  # which knows no feasible point yet


def test_without_a_feasible_point_eic_looks_for_one_and_forgets_the_objective() -> None:
    X = rows(20, 0)
    left_of_all = -1 - X[:, 0] / 5 - left(X).abs()
    assert (left_of_all < 0).all()
    one, other = (History(X, torch.stack([sign * X[:, 1], left_of_all], -1), 20) for sign in (1, -1))
    method = make("eic", "objective", "at_least_zero")
    assert torch.equal(asked(method, one), asked(method, other))
    models = fit_outcomes(one, BOX, ModelOptions(priors="none"))
    round = Round(one, one, method.domain.space, 1, torch.Generator().manual_seed(0))
    U = rows(5, 3).unsqueeze(-2)
    chance = log_constrained_improvement(models, ["objective", "at_least_zero"], None, 0.01)
    torch.testing.assert_close(method.utility(models, round)(U), chance(U))


def test_without_a_feasible_point_epbo_goes_on_as_ever() -> None:
    """It knows no incumbent: the objective counts among points that may be feasible."""
    X = rows(4, 0)
    never = torch.tensor([-1.0, -0.5, -0.8, -0.6], dtype=torch.float64)
    seen = History(X, torch.stack([X[:, 1], never], -1), 4)
    method = make("epbo-inf", "objective", "at_least_zero", model={}, sqrt_beta=6.0)
    models, U = method.fit(seen), rows(200, 1)
    round = Round(seen, seen, method.domain.space, 1, torch.Generator().manual_seed(0))
    (bound, maybe), (mean, variance) = (models[i].posterior_moments(U, joint=False) for i in (0, 1))
    holds = mean + 6 * variance.sqrt() >= 0
    assert 10 < holds.sum() < 190
    found = method.utility(models, round)(U.unsqueeze(-2))
    torch.testing.assert_close(found[holds], (bound + 6 * maybe.sqrt())[holds])
    assert found[holds].min() > found[~holds].max()
    asked(method, seen)


def contradicted() -> Tensor:
    """Return points of the whole box, its corners among them, so that no model is much less certain at the edges."""
    return torch.cat([rows(20, 0), torch.cartesian_prod(*BOX.T)])


@pytest.mark.slow
@pytest.mark.parametrize("arm", ARMS)
def test_constraints_that_contradict_each_other(arm: str) -> None:
    """One holds left of the middle, the other right of it and further on: the least bad is in between."""
    X = contradicted()
    seen = History(X, torch.stack([X[:, 1], left(X) - 1, -left(X) - 1], -1), len(X))
    x = asked(make(arm, "objective", "at_least_zero", "at_least_zero"), seen, 2)
    assert ((x[:, 0] > -2) & (x[:, 0] < 7)).all()


@pytest.mark.parametrize("arm", ARMS)
def test_outcomes_that_are_missing_are_left_out_of_their_own_model_only(arm: str) -> None:
    X = rows(12, 0)
    Y = torch.stack([objective(X)[:, 0], left(X), X[:, 1] - 7], -1)
    Y[:4, 0], Y[4:7, 1], Y[2:5, 2] = torch.nan, torch.nan, torch.nan
    method = make(arm, *ROLES)
    seen = History(X, Y, 12)
    asked(method, seen)
    models = method.fit(method.training_rows(seen))
    assert [len(model.y) for model in models] == [8, 9, 9]
    predictor = method.predictor(History(X[7:], Y[7:], 5))
    assert predictor is not None
    assert predictor(rows(3, 4)).mean.shape == (3, 3)


@pytest.mark.parametrize("arm", ARMS)
def test_a_constraint_that_was_never_observed_is_one_line(arm: str) -> None:
    seen = history(torch.full((8,), torch.nan, dtype=torch.float64))
    with pytest.raises(PlumblineError, match=r"outcome 'zero-1' \(zero\) has no observation yet") as caught:
        ask(make(arm, "objective", "zero"), seen, 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("outcome", [0, 1])
def test_an_outcome_that_is_the_same_everywhere(arm: str, outcome: int) -> None:
    """A constant objective leaves the constraint to decide; a constraint that never moves, the objective."""
    X = rows(8, 0)
    Y = torch.stack([objective(X)[:, 0], left(X)], -1)
    Y[:, outcome] = 3.0
    asked(make(arm, "objective", "at_least_zero"), History(X, Y, 8), 2)


@pytest.mark.parametrize("arm", ARMS)
def test_points_of_a_batch_differ(arm: str) -> None:
    X = rows(12, 0)
    x = asked(make(arm, *ROLES), History(X, torch.stack([X[:, 1], left(X), X[:, 1] - 7], -1), 12), 3)
    assert torch.cdist(x, x)[~torch.eye(3, dtype=torch.bool)].min() > 1e-3


@pytest.mark.parametrize("name", ["eic", "epbo"])
def test_other_outcomes_are_refused(name: str) -> None:
    for outcomes in (1, 2):
        place = box(outcomes=outcomes)
        with pytest.raises(PlumblineError, match=f"method '{name}' is for one objective and constraints; this"):
            build_method(name, {}, place.domain)
    with pytest.raises(PlumblineError, match="is for one objective and constraints; this problem has objective-0"):
        build_method(name, {}, domain("objective", "objective", "zero"))


@pytest.mark.parametrize("rho", [0.0, -1.0, float("inf")])
def test_a_rho_that_is_no_penalty_is_refused(rho: float) -> None:
    with pytest.raises(PlumblineError, match="rho"):
        make("epbo", "objective", "zero", rho=rho)
