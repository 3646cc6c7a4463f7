import pytest
import torch
from adaptation_cases import answered, check_resumed, failing
from linear_operator.utils.errors import NotPSDError
from situations import QUICK, Situation, ask, box, objective, rows

from plumbline.core.history import History
from plumbline.methods.base import build_method
from plumbline.methods.wrappers.relay import Relay


def relay(place: Situation, *members, **own) -> Relay:
    method = build_method("relay", {**QUICK, "members": list(members or ("ei", "ucb", "pi")), **own}, place.domain)
    assert isinstance(method, Relay)
    return method


def turns(method: Relay, place: Situation, gains: list[float]) -> list[int]:
    """Return who proposes in rounds whose observations are so much above the best one before."""
    history, found = place.history, []
    for seed, gain in enumerate(gains):
        proposal = ask(method, history, 1, seed)
        found.append(int(proposal.notes["member"]))
        Y = history.Y[history.Y.isfinite()].max().add(gain).view(1, 1)
        method.tell(proposal.X, Y)
        history = history.join(proposal.X, Y)
    return found


def test_a_member_stays_while_it_improves_and_then_the_next_comes() -> None:
    assert turns(relay(box()), box(), [1, 1, -1, 1, -1, 0, 1, -1, 1]) == [0, 0, 0, 1, 1, 2, 0, 0, 1]


def test_patience_is_for_failures_in_a_row() -> None:
    found = turns(relay(box(), patience=2), box(), [-1, 1, -1, -1, -1, 1, -1, -1, 1])
    assert found == [0, 0, 0, 0, 1, 1, 1, 1, 2]


def test_a_failed_evaluation_is_no_improvement() -> None:
    assert turns(relay(box()), box(), [float("nan"), 1, float("nan"), 1]) == [0, 1, 1, 2]


def test_after_nothing_but_failures_any_number_is_one() -> None:
    place = box()
    method = relay(place)
    method.to_beat = -torch.inf
    method.tell(rows(1, 3), torch.full((1, 1), -1e9).double())
    assert (method.place, method.failures) == (0, 0)


def test_a_batch_improves_by_its_best_point() -> None:
    place = box()
    method = relay(place)
    proposal = ask(method, place.history, 2)
    method.tell(proposal.X, torch.tensor([[-1e3], [1e3]], dtype=torch.float64))
    assert method.place == 0


def test_what_is_told_without_being_asked_for_counts_neither_way() -> None:
    place = box()
    method = relay(place)
    method.tell(rows(2, 4), objective(rows(2, 4)) - 1e3)
    assert (method.place, method.failures) == (0, 0)


def test_one_that_fails_hands_over_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    method = relay(place, patience=3)
    method.failures = 2
    failing(monkeypatch, method.members[0], "utility", NotPSDError("no factor"))
    proposal, events = answered(method, place.history)
    assert (proposal.notes, events) == ({"member": 1.0}, ["MemberFailedWarning"])
    method.tell(proposal.X, place.history.Y.min().view(1, 1))
    assert (method.place, method.failures) == (1, 1)  # it has its own failures to come


@pytest.mark.parametrize("q", [1, 2])
def test_resumed_equals_uninterrupted(q: int) -> None:
    place = box(n=4)
    notes = check_resumed(lambda: relay(place), place, q)
    assert len({one["member"] for one in notes}) > 1


def test_the_whole_history_is_to_be_beaten_in_a_trust_region_too() -> None:
    place = box(n=8)
    inner = {"name": "relay", "options": {**QUICK, "members": ["ei", "ucb"]}}
    method = build_method("trust-region", {"base": inner}, place.domain)
    Y = place.history.Y.clone()
    Y[0] += 100
    history = History(place.history.X, Y, 8)
    proposal = ask(method, history, 1)
    method.tell(proposal.X, Y.max().view(1, 1) - 50)
    assert method.base.place == 1
