import pytest
import torch
from adaptation_cases import answered, check_resumed, failing
from linear_operator.utils.errors import NotPSDError
from situations import QUICK, Situation, ask, box, objective, rows

from plumbline.core.errors import PlumblineError
from plumbline.methods.base import build_method
from plumbline.methods.wrappers.roulette import Roulette

NAMES = ("weight.ei", "weight.ucb", "weight.pi")


def roulette(place: Situation, **own) -> Roulette:
    method = build_method("roulette", {**QUICK, "members": ["ei", "ucb", "pi"], **own}, place.domain)
    assert isinstance(method, Roulette)
    return method


def after(place: Situation, gain: float, **own) -> tuple[int, list[float]]:
    """Return who proposed in a round that came so much above the best one before, and the chances after it."""
    method = roulette(place, **own)
    proposal = ask(method, place.history, 1)
    Y = place.history.Y.max().add(gain).view(1, 1)
    method.tell(proposal.X, Y)
    notes = ask(method, place.history.join(proposal.X, Y), 1, seed=6).notes
    return int(proposal.notes["member"]), [notes[name] for name in NAMES]


@pytest.mark.parametrize(("own", "factor"), [({}, 2.0), ({"factor": 5.0}, 5.0), ({"factor": 1.0}, 1.0)])
def test_a_success_multiplies_the_weight_of_the_one_that_was_drawn(own: dict, factor: float) -> None:
    drawn, chances = after(box(), 1.0, **own)
    expected = [1 / (factor + 2)] * 3
    expected[drawn] = factor / (factor + 2)
    assert chances == pytest.approx(expected)


@pytest.mark.parametrize("gain", [0.0, -1.0, float("nan")])
def test_what_does_not_improve_changes_no_weight(gain: float) -> None:
    assert after(box(), gain)[1] == pytest.approx([1 / 3] * 3)


@pytest.mark.slow
def test_members_propose_as_often_as_their_weights_say() -> None:
    place = box()
    method = roulette(place, factor=3.0)
    method.successes = [0, 1, 1]
    drawn = [ask(method, place.history, 1, seed).notes["member"] for seed in range(100)]
    assert drawn.count(0.0) == pytest.approx(100 / 7, abs=4 * (100 * 6 / 49) ** 0.5)
    assert drawn.count(2.0) == pytest.approx(300 / 7, abs=4 * (100 * 12 / 49) ** 0.5)


def test_only_the_one_that_is_drawn_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    method = roulette(place)
    drawn = int(ask(method, place.history, 1).notes["member"])
    for other in {0, 1, 2} - {drawn}:
        failing(monkeypatch, method.members[other], "utility", AssertionError("a search that nobody asked for"))
    assert ask(method, place.history, 1).notes["member"] == drawn


def test_where_one_fails_another_is_drawn_and_has_the_success(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    method = roulette(place)
    method.successes = [5000, 0, 0]  # the others' chances are zero to rounding
    failing(monkeypatch, method.members[0], "utility", NotPSDError("no factor"))
    proposal, events = answered(method, place.history)
    assert events == ["MemberFailedWarning"]
    drawn = int(proposal.notes["member"])
    method.tell(proposal.X, place.history.Y.max().add(1).view(1, 1))
    assert method.successes == [5000, int(drawn == 1), int(drawn == 2)]


def test_a_batch_succeeds_by_its_best_point() -> None:
    place = box()
    method = roulette(place)
    method.tell(ask(method, place.history, 2).X, torch.tensor([[-1e3], [1e3]], dtype=torch.float64))
    assert sum(method.successes) == 1


def test_what_others_asked_for_is_nobodys_success(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    fresh = roulette(place)
    fresh.tell(rows(2, 4), objective(rows(2, 4)) + 1e3)  # the initial design
    assert fresh.successes == [0, 0, 0]
    inner = {"name": "roulette", "options": {**QUICK, "members": ["ei", "ucb"]}}
    method = build_method("exploit", {"base": inner, "gamma": 1.0}, place.domain)
    method.tell(ask(method, place.history, 1).X, place.history.Y.max().add(1).view(1, 1))
    assert method.base.successes == [0, 0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("q", [1, 2])
def test_resumed_equals_uninterrupted(q: int) -> None:
    place = box(n=4)
    notes = check_resumed(lambda: roulette(place), place, q)
    assert len({one["member"] for one in notes}) > 1


@pytest.mark.parametrize("factor", [0.5, float("inf")])
def test_a_success_makes_no_weight_less(factor: float) -> None:
    with pytest.raises(PlumblineError, match="factor"):
        roulette(box(), factor=factor)
