import math

import pytest
import torch
from adaptation_cases import answered, check_resumed, failing, restored
from linear_operator.utils.errors import NotPSDError
from situations import QUICK, Situation, ask, box, objective, rows

from plumbline.methods.base import build_method
from plumbline.methods.wrappers.hedge import Hedge, rewards


def hedge(place: Situation, *members, **own) -> Hedge:
    method = build_method("hedge", {**QUICK, "members": list(members or ("ei", "ucb", "ts")), **own}, place.domain)
    assert isinstance(method, Hedge)
    return method


def means(method: Hedge, place: Situation, nominees: list[torch.Tensor]) -> list[float]:
    """Standardised posterior means, by the way of the observations' units."""
    process = method.fit(place.history)
    found = [process.posterior_moments(X, joint=False)[0].mean() for X in nominees]
    Y = place.history.Y
    return [float((mean - Y.mean()) / Y.std()) for mean in found]


def test_at_first_all_are_as_likely_and_then_by_what_they_would_have_found() -> None:
    place = box(n=8)
    method = hedge(place, learning_rate=2.0)
    first = ask(method, place.history, 1)
    names = ("weight.ei", "weight.ucb", "weight.ts")
    assert [first.notes[name] for name in names] == pytest.approx([1 / 3] * 3)
    nominees = list(method.asked)
    Y = objective(first.X)
    method.tell(first.X, Y)
    later = Situation(place.domain, place.history.join(first.X, Y))
    second = ask(method, later.history, 1, seed=6)
    gains = means(method, later, nominees)
    weights = [math.exp(2.0 * gain) for gain in gains]
    assert [second.notes[name] for name in names] == pytest.approx([weight / sum(weights) for weight in weights])
    nominees = list(method.asked)
    method.tell(second.X, objective(second.X))
    last = Situation(place.domain, later.history.join(second.X, objective(second.X)))
    third = ask(method, last.history, 1, seed=7)
    gains = [gain + more for gain, more in zip(gains, means(method, last, nominees), strict=True)]
    weights = [math.exp(2.0 * gain) for gain in gains]
    assert [third.notes[name] for name in names] == pytest.approx([weight / sum(weights) for weight in weights])


@pytest.mark.slow
def test_members_propose_as_often_as_their_weights_say() -> None:
    place = box()
    method = hedge(place, "ei", "ucb")
    method.gains = torch.tensor([0.0, math.log(3.0)], dtype=torch.float64)
    drawn = [ask(method, place.history, 1, seed).notes["member"] for seed in range(100)]
    assert sum(drawn) == pytest.approx(75, abs=4 * (100 * 0.75 * 0.25) ** 0.5)


def test_without_a_learning_rate_nothing_is_learnt() -> None:
    place = box()
    method = hedge(place, "ei", "ucb", learning_rate=0.0)
    method.gains = torch.tensor([0.0, 1e3], dtype=torch.float64)
    assert ask(method, place.history, 1).notes["weight.ei"] == 0.5


def test_rewards_do_not_depend_on_the_units_of_the_observations() -> None:
    place = box(n=8)
    method = hedge(place)
    nominees = [rows(1, 3), rows(1, 4), rows(1, 5)]
    other = method.fit(type(place.history)(place.history.X, 1e3 - 7 + 50 * place.history.Y, 8))
    expected = rewards(method.fit(place.history), nominees)
    torch.testing.assert_close(rewards(other, nominees), expected, rtol=1e-4, atol=1e-4)


def test_a_batch_gains_the_mean_of_its_points() -> None:
    place = box(n=8)
    method = hedge(place)
    process = method.fit(place.history)
    X = rows(3, 3)
    alone = [rewards(process, [x.unsqueeze(0)]) for x in X]
    torch.testing.assert_close(rewards(process, [X]), torch.stack(alone).mean(0))


def test_one_that_was_left_out_gains_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box(n=8)
    method = hedge(place)
    failing(monkeypatch, method.members[1], "utility", NotPSDError("no factor"))
    proposal, _ = answered(method, place.history)
    assert proposal.notes["weight.ucb"] == 0.0
    assert method.asked[1] is None
    Y = objective(proposal.X)
    method.tell(proposal.X, Y)
    monkeypatch.undo()
    again = ask(method, place.history.join(proposal.X, Y), 1)
    assert again.notes["weight.ucb"] == min(again.notes[name] for name in again.notes if name.startswith("weight"))
    assert again.notes["weight.ucb"] > 0


def test_what_was_not_observed_earns_nothing() -> None:
    place = box()
    method = hedge(place)
    first = ask(method, place.history, 1)
    assert ask(method, place.history, 1).notes == first.notes
    assert torch.equal(method.gains, torch.zeros(3).double())
    fresh = hedge(place)
    fresh.tell(rows(2, 4), objective(rows(2, 4)))  # the initial design
    assert ask(fresh, place.history, 1).notes == first.notes


def test_rewards_wait_while_a_guard_takes_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box(n=8)
    inner = {"name": "hedge", "options": {**QUICK, "members": ["ei", "ucb", "ts"]}}
    method = build_method("exploit", {"base": inner}, place.domain)
    base, nominees, gains = method.base, [], torch.zeros(3, dtype=torch.float64)  # type: ignore[attr-defined]
    for seed, guarded in enumerate([False, True, False, False]):
        monkeypatch.setattr(method, "exploits", lambda round, guarded=guarded: guarded)
        proposal = ask(method, place.history, 1, seed)
        if nominees and not guarded:
            gains = gains + torch.tensor(means(base, place, nominees), dtype=torch.float64)
        torch.testing.assert_close(base.gains, gains)
        nominees = nominees if guarded else list(base.asked)
        Y = objective(proposal.X)
        method.tell(proposal.X, Y)
        place = Situation(place.domain, place.history.join(proposal.X, Y))
    assert gains.unique().numel() > 1


@pytest.mark.parametrize("keeps_data", [False, True])
def test_rewards_lapse_where_a_trust_region_begins_without_the_data_that_they_are_of(keeps_data: bool) -> None:
    place = box(n=4)
    inner = {"name": "hedge", "options": {**QUICK, "members": ["ei", "ucb", "ts"]}}
    short = {"min_length": 0.8, "failure_tolerance": 1, "keeps_data": keeps_data}
    method = build_method("trust-region", {"base": inner, **short}, place.domain)
    base = method.base  # type: ignore[attr-defined]
    for seed in range(6):
        proposal = ask(method, place.history, 1, seed)
        begins = "member" not in proposal.notes
        assert begins == (not keeps_data and 1 <= seed <= 4)
        assert bool((base.gains != 0).all()) == (keeps_data and seed > 0)
        Y = objective(proposal.X) - 1e3 * (seed == 0)
        method.tell(proposal.X, Y)
        place = Situation(place.domain, place.history.join(proposal.X, Y))


def test_a_round_that_failed_earns_what_one_of_the_worst_value_does() -> None:
    place = box(n=8)
    gains = []
    for Y in (torch.full((1, 1), torch.nan, dtype=torch.float64), place.history.Y.min().view(1, 1)):
        method = hedge(place)
        first = ask(method, place.history, 1)
        method.tell(first.X, Y)
        ask(method, place.history.join(first.X, Y), 1)
        gains.append(method.gains)
    assert torch.equal(*gains)
    assert (gains[0] != 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_resumed_equals_uninterrupted(q: int) -> None:
    place = box(n=4)
    notes = check_resumed(lambda: hedge(place, "ei", "ucb", "mes"), place, q)
    assert len({one["member"] for one in notes}) > 1


def test_who_was_left_out_survives_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    method = hedge(place)
    failing(monkeypatch, method.members[0], "search", NotPSDError("no factor"))
    proposal, _ = answered(method, place.history)
    method.tell(proposal.X, objective(proposal.X))
    resumed = restored(lambda: hedge(place), method)
    assert resumed.due[0] is None
    assert torch.equal(resumed.due[1], method.due[1])
