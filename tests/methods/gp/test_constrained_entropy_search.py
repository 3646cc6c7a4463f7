"""Constrained entropy search: what it asks for, and what it does where there is nothing to learn."""

import warnings
from typing import Any

import pytest
import torch
from situations import BOX, ask, box, objective, rows, table
from torch import Tensor

from plumbline.acquisition.constraints.feasibility import SumOverOutcomes
from plumbline.acquisition.information.paths import Peaks
from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.outcomes import Outcome, Role
from plumbline.methods.base import Domain, Proposal, build_method
from plumbline.methods.gp import constrained_entropy_search as constrained_information
from plumbline.methods.gp.constrained_entropy_search import (
    ConstrainedEntropySearch,
    NothingFeasibleWarning,
    NothingToLearnWarning,
)
from plumbline.spaces.box import Box

FEW: dict[str, Any] = {
    "search": {"restarts": 2, "raw_samples": 64, "maxiter": 30},
    "model": {"priors": "none"},
    "optima": 4,
}
ROLES: tuple[Role, ...] = ("objective", "at_least_zero", "zero")


def make(*roles: Role, **options: Any) -> ConstrainedEntropySearch:
    outcomes = tuple(Outcome(f"{role}-{i}", role) for i, role in enumerate(roles))
    method = build_method("cjes", {**FEW, **options}, Domain(Box(BOX), outcomes))
    assert isinstance(method, ConstrainedEntropySearch)
    return method


def asked(method: ConstrainedEntropySearch, seen: History, q: int = 1) -> tuple[Proposal, Tensor, list[str]]:
    """Return the proposal, which outcomes it asks for, and the events."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ask(method, seen, q)
    assert found.X.shape == (q, 2)
    assert torch.isfinite(found.X).all()
    assert ((BOX[0] <= found.X) & (BOX[1] >= found.X)).all()
    assert found.observed is not None
    return found, found.observed, [warning.category.__name__ for warning in caught]


def left(X: Tensor) -> Tensor:
    """Return what is at least zero left of the middle of the box."""
    return (2.5 - X[:, 0]) / 3


def history(n: int = 12, seed: int = 0) -> History:
    X = rows(n, seed)
    return History(X, torch.stack([objective(X)[:, 0], left(X), X[:, 1] - 7], -1), n)


@pytest.mark.slow
@pytest.mark.parametrize("q", [1, 3])
def test_one_outcome_is_asked_for_at_a_time_or_all(q: int) -> None:
    _, together, _ = asked(make(*ROLES), history(), q)
    assert together.all()
    _, apart, _ = asked(make(*ROLES, decoupled=True), history(), q)
    assert apart.sum(-1).tolist() == [1] * q


@pytest.mark.parametrize("cheap", [0, 1, 2])
def test_what_costs_next_to_nothing_is_asked_for(cheap: int) -> None:
    costs = [1e6 if i != cheap else 1e-6 for i in range(3)]
    _, wanted, _ = asked(make(*ROLES, decoupled=True, costs=costs), history())
    assert wanted.nonzero()[:, 1].tolist() == [cheap]


def test_a_constraint_that_is_known_is_not_asked_for() -> None:
    """It was observed to be far above zero everywhere; of the objective little was seen."""
    X = rows(30, 0)
    Y = torch.stack([X[:, 1].sin(), 50 + X[:, 0] / 10], -1)
    Y[4:, 0] = torch.nan
    _, wanted, _ = asked(make("objective", "at_least_zero", decoupled=True, costs=[10.0, 1.0]), History(X, Y, 30))
    assert wanted.tolist() == [[True, False]]


@pytest.mark.parametrize("decoupled", [True, False])
def test_outcomes_that_are_missing_are_left_out_of_their_own_model_only(decoupled: bool) -> None:
    seen = history(14)
    Y = seen.Y.clone()
    Y[:4, 0], Y[4:7, 1], Y[2:5, 2] = torch.nan, torch.nan, torch.nan
    method, partly = make(*ROLES, decoupled=decoupled), History(seen.X, Y, 14)
    proposal, _, _ = asked(method, partly)
    assert [len(model.y) for model in method.fit(method.training_rows(partly))] == [10, 11, 11]
    assert proposal.predict is not None
    assert proposal.predict(rows(3, 4)).mean.shape == (3, 3)
    assert 0 <= proposal.notes["recommended"] < 14


@pytest.mark.slow
def test_before_any_draw_is_feasible_only_constraints_are_asked_for() -> None:
    X = rows(20, 0)
    never = -20 - left(X).abs()
    for decoupled in (True, False):
        method = make("objective", "at_least_zero", decoupled=decoupled)
        proposal, wanted, events = asked(method, History(X, torch.stack([X[:, 1], never], -1), 20), 2)
        assert NothingFeasibleWarning.__name__ in events
        assert wanted.tolist() == [[False, True]] * 2
        assert 0 <= proposal.notes["recommended"] < 20


def test_before_any_point_is_feasible_draws_may_be() -> None:
    """No observation is feasible, and the optimum is where the constraint may hold, on the left."""
    X = rows(20, 0)
    X = X[X[:, 0] > 0]
    held = History(X, torch.stack([X[:, 1], -0.5 - X[:, 0]], -1), len(X))
    assert (held.Y[:, 1] < 0).all()
    proposal, _, events = asked(make("objective", "at_least_zero", decoupled=True), held)
    assert NothingFeasibleWarning.__name__ not in events
    assert proposal.X[0, 0] < 2


@pytest.mark.slow
@pytest.mark.parametrize("decoupled", [True, False])
def test_constraints_that_contradict_each_other(decoupled: bool) -> None:
    """One holds left of the middle, the other right of it and further on: the least bad is in between."""
    # With the corners of the box, so that no model is much less certain at the edges.
    X = torch.cat([rows(20, 0), torch.cartesian_prod(*BOX.T)])
    seen = History(X, torch.stack([X[:, 1], left(X) - 1, -left(X) - 1], -1), len(X))
    proposal, wanted, events = asked(make("objective", "at_least_zero", "at_least_zero", decoupled=decoupled), seen, 2)
    assert NothingFeasibleWarning.__name__ in events
    assert wanted.tolist() == [[False, True, True]] * 2
    assert ((proposal.X[:, 0] > -2) & (proposal.X[:, 0] < 7)).all()


@pytest.mark.parametrize("decoupled", [True, False])
def test_where_all_draws_have_one_optimum_improvement_is_asked(
    decoupled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = Peaks(BOX[:1].expand(4, 2), torch.full((4,), 200.0, dtype=torch.float64))
    monkeypatch.setattr(constrained_information, "constrained_peaks", lambda *_: same)
    method = make("objective", "at_least_zero", decoupled=decoupled)
    X = rows(12, 0)
    seen = History(X, torch.stack([objective(X)[:, 0], left(X)], -1), 12)
    _, wanted, events = asked(method, seen)
    assert NothingToLearnWarning.__name__ in events
    assert wanted.all()


def test_draws_without_an_optimum_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    nan = torch.nan
    some = Peaks(
        torch.tensor([[0.0, 5.0], [nan, nan], [1.0, 6.0], [nan, nan]]).double(),
        torch.tensor([205.0, nan, 210.0, nan]).double(),
    )
    monkeypatch.setattr(constrained_information, "constrained_peaks", lambda *_: some)
    proposal, wanted, events = asked(make(*ROLES, decoupled=True), history())
    assert not {NothingFeasibleWarning.__name__, NothingToLearnWarning.__name__} & set(events)
    assert wanted.sum() == 1
    assert proposal.acquisition is not None
    assert torch.isfinite(proposal.acquisition(rows(9, 3))).all()


@pytest.mark.slow
@pytest.mark.parametrize("outcome", [0, 1])
def test_an_outcome_that_is_the_same_everywhere(outcome: int) -> None:
    X = rows(8, 0)
    Y = torch.stack([objective(X)[:, 0], left(X)], -1)
    Y[:, outcome] = 3.0
    asked(make("objective", "at_least_zero", decoupled=True), History(X, Y, 8), 2)


def test_a_row_of_a_table_is_asked_for_once() -> None:
    place = table(outcomes=2, second="at_least_zero")
    method = build_method("cjes", {**FEW, "decoupled": True}, place.domain)
    X = ask(method, place.history, 5).X
    assert len(X.unique(dim=0)) == 5


def test_a_fallback_says_which_outcomes_count() -> None:
    method = make(*ROLES)
    models = method.fit(history())
    sums = SumOverOutcomes(models, [None, lambda mean, sd: (mean, sd, sd), None])
    assert constrained_information.best_request(sums, rows(1, 0)) == (1,)


@pytest.mark.parametrize("costs", [[1.0], [1.0, 2.0, 3.0, 4.0]])
def test_costs_of_other_outcomes_are_refused(costs: list[float]) -> None:
    message = rf"costs: {len(costs)} for 3 outcomes \(objective-0, at_least_zero-1, zero-2\): give one each"
    with pytest.raises(PlumblineError, match=message):
        make(*ROLES, decoupled=True, costs=costs)


def test_costs_that_decide_nothing_are_refused() -> None:
    with pytest.raises(PlumblineError, match="costs have no effect where all outcomes are requested"):
        make(*ROLES, costs=[1.0, 1.0, 1.0])
    with pytest.raises(PlumblineError, match="greater than 0"):
        make(*ROLES, decoupled=True, costs=[1.0, 0.0, 1.0])


def test_other_outcomes_are_refused() -> None:
    for outcomes in (1, 2):
        place = box(outcomes=outcomes)
        with pytest.raises(PlumblineError, match="method 'cjes' is for one objective and constraints; this"):
            build_method("cjes", {}, place.domain)


def test_a_constraint_that_was_never_observed_is_one_line() -> None:
    seen = history()
    Y = seen.Y.clone()
    Y[:, 1] = torch.nan
    with pytest.raises(PlumblineError, match=r"outcome 'at_least_zero-1' \(at_least_zero\) has no observation yet"):
        ask(make(*ROLES, decoupled=True), History(seen.X, Y, 12), 1)
