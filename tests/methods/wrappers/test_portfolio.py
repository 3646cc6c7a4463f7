"""What both rules share: members, their surrogate, and what becomes of those that fail."""

import numpy as np
import pytest
import torch
from adaptation_cases import answered, constant, failing
from botorch.exceptions.errors import OptimizationGradientError
from linear_operator.utils.errors import NanError, NotPSDError
from situations import QUICK, Situation, ask, box

from plumbline.core.errors import PlumblineError
from plumbline.methods.base import build_method
from plumbline.methods.wrappers.portfolio import Portfolio, PortfolioOptions
from plumbline.methods.wrappers.roulette import Roulette
from plumbline.store.keys import methods_of

RULES = ["hedge", "relay", "roulette"]


def portfolio(place: Situation, rule: str, *members, **own) -> Portfolio:
    method = build_method(rule, {**QUICK, "members": list(members or ("ei", "ucb", "pi")), **own}, place.domain)
    assert isinstance(method, Portfolio)
    if isinstance(method, Roulette):
        method.successes[0] = 50  # as good as always the first that is drawn
    return method


def test_members_have_the_portfolios_model_and_its_search_where_they_have_none() -> None:
    own = {"name": "ts", "options": {"search": {"restarts": 3}}}
    method = portfolio(box(), "hedge", "ei", own, model={"kernel": "rbf"})
    assert {member.options.model.kernel for member in method.members} == {"rbf"}
    assert [member.options.search.restarts for member in method.members] == [1, 3]
    assert method.members[0].options.mc_samples == 8


def test_a_name_that_comes_again_is_numbered() -> None:
    members = ["ucb", {"name": "ucb", "options": {"sqrt_beta": 3.0}}, "ei", "ucb"]
    assert PortfolioOptions(members=members).names == ["ucb", "ucb-2", "ei", "ucb-3"]


@pytest.mark.parametrize("rule", RULES)
def test_the_surrogate_is_fitted_once(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    method = portfolio(place, rule)
    for member in method.members:
        failing(monkeypatch, member, "fit", AssertionError("a member's own surrogate"))
    proposal = ask(method, place.history, 1)
    member = method.options.names[int(proposal.notes["member"])]
    alone = ask(build_method(member, QUICK, place.domain), place.history, 1)
    assert torch.equal(proposal.X, alone.X)
    assert torch.equal(proposal.acquisition(place.history.X), alone.acquisition(place.history.X))


@pytest.mark.parametrize(
    "error",
    [NotPSDError("no factor"), NanError("nan"), OptimizationGradientError("nan", current_x=np.zeros(2))],
)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("where", ["utility", "search"])
def test_a_member_that_fails_is_left_out(
    rule: str, where: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = box()
    method = portfolio(place, rule, "ei", "ucb")
    failing(monkeypatch, method.members[0], where, error)
    proposal, events = answered(method, place.history)
    assert events == ["MemberFailedWarning"]
    assert proposal.notes["member"] == 1.0
    assert torch.equal(proposal.X, ask(build_method("ucb", QUICK, place.domain), place.history, 1).X)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("where", ["information", "search"])
def test_an_entropy_search_that_fails_is_left_out_and_asks_no_other(
    rule: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = box()
    method = portfolio(place, rule, "mes", "ucb")
    failing(monkeypatch, method.members[0], "information" if where == "information" else "_one_by_one", NanError("nan"))
    proposal, events = answered(method, place.history)
    assert events == ["MemberFailedWarning"]
    assert proposal.notes["member"] == 1.0


@pytest.mark.parametrize("rule", RULES)
def test_an_entropy_search_with_nothing_to_learn_asks_for_noisy_improvement(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = box()
    method = portfolio(place, rule, "mes", "mes")
    monkeypatch.setattr("plumbline.methods.gp.entropy_search.degenerate", lambda drawn: True)
    _, events = answered(method, place.history)
    assert events == ["NothingToLearnWarning"]


@pytest.mark.parametrize("rule", RULES)
def test_a_proposal_that_is_no_number_is_a_failure(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    method = portfolio(place, rule, "ei", "ucb")
    search = method.members[0].search

    def lost(*args):
        choice = search(*args)
        choice.X.fill_(torch.nan)
        return choice

    monkeypatch.setattr(method.members[0], "search", lost)
    proposal, events = answered(method, place.history)
    assert events == ["MemberFailedWarning"]
    assert proposal.notes["member"] == 1.0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_if_all_fail_that_is_an_error_in_one_line(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    method = portfolio(place, rule, "ei", "ucb")
    for member in method.members:
        failing(monkeypatch, member, "utility", NotPSDError("no\nfactor"))
    with pytest.raises(PlumblineError, match="no member of the portfolio came to a proposal: ei, ucb") as caught:
        ask(method, place.history, 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_other_errors_of_a_member_are_those_of_the_trial(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    method = portfolio(place, rule, "ei", "ucb")
    failing(monkeypatch, method.members[0], "search", KeyError("a mistake"))
    with pytest.raises(KeyError):
        ask(method, place.history, 1)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("place", [box(n=1), constant()], ids=["one", "constant"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_single_observation_and_a_constant_objective(place: Situation, rule: str) -> None:
    method, history = portfolio(place, rule, "ei", "ucb", "mes"), place.history
    for seed in range(3):
        X = ask(method, history, 1, seed).X
        assert torch.isfinite(X).all()
        Y = history.Y[:1]
        method.tell(X, Y)
        history = history.join(X, Y)


def test_a_trials_key_covers_its_members() -> None:
    members = ["mes", {"name": "kg", "options": {}}]
    assert [choice.name for choice in methods_of("hedge", {"members": members})] == ["hedge", "mes", "kg"]


@pytest.mark.parametrize("rule", RULES)
def test_wrappers_go_around_it(rule: str) -> None:
    place = box(n=8)
    inner = {"name": rule, "options": {**QUICK, "members": ["ei", "ucb"]}}
    for wrapper, note in (
        ("calibrated", "sd_scale"),
        ("trust-region", "region_length"),
        ("kernel-selection", "kernel"),
    ):
        notes = ask(build_method(wrapper, {"base": inner}, place.domain), place.history, 1).notes
        assert {"member", note} <= set(notes)


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (["ei"], "at least 2 wanted"),
        (["ei", "random"], "member 'random' does not provide 'shared gp' .*: use .*ei, jes"),
        (["ei", "cucb"], "member 'cucb' does not provide 'shared gp'"),
        (["ei", {"name": "calibrated", "options": {"base": "ei"}}], "member 'calibrated' does not provide 'shared gp'"),
        (["ei", "relay"], "member 'relay' does not provide 'shared gp'"),
        (["ei", {"name": "ucb", "options": {"model": {}}}], "members: 'ucb' has a `model`: it is the portfolio's"),
        (["ei", {"name": "ucb", "options": {"bta": 1}}], "member 'ucb': unknown field 'bta'"),
        (["ei", "ucbb"], "unknown method 'ucbb': did you mean 'ucb'"),
    ],
)
@pytest.mark.parametrize("rule", RULES)
def test_what_cannot_be_a_member_is_one_line(rule: str, members: list, reason: str) -> None:
    with pytest.raises(PlumblineError, match=reason) as caught:
        portfolio(box(), rule, *members)
    assert "\n" not in str(caught.value)
