"""A search that another one checks, around any method that searches."""

from typing import Any

import pytest
import torch
from situations import QUICK, Situation, box, table
from sparse_situations import SMALL, ask, question

from plumbline.core.errors import PlumblineError
from plumbline.methods.base import build_method
from plumbline.methods.proposal import Proposal

Choice = dict[str, Any]

THOROUGH: Choice = {"search": {"restarts": 8, "raw_samples": 256}}
RANDOM: Choice = {"search": {"restarts": 1, "raw_samples": 1, "maxiter": 1}}


def choice(name: str, **options: Any) -> Choice:
    return {"name": name, "options": options}


def audited(base: Choice, audit: Choice, place: Situation) -> Any:
    return build_method("audited-search", {"base": base, "audit": audit}, place.domain)


BASES: dict[str, tuple[Choice, Choice]] = {
    "ei": (choice("ei", **QUICK), choice("logei", **QUICK)),
    "ucb": (choice("ucb", **QUICK), choice("informed-search", base=choice("ucb", **QUICK))),
    "ts": (choice("ts"), choice("ei", **QUICK)),
    "hedge": (choice("hedge", **QUICK, members=["ei", "ucb"]), choice("ei", **QUICK)),
    "trust-region": (choice("trust-region", base=choice("ei", **QUICK)), choice("ei", **QUICK)),
    "locbo": (choice("locbo", **QUICK), choice("informed-search", base=choice("locbo", **QUICK))),
    "elbo-ei": (
        choice("elbo-ei", **SMALL),
        choice("informed-search", base=choice("elbo-ei", **SMALL, improvement="log")),
    ),
    "eulbo-ei": (choice("eulbo-ei", **SMALL), choice("moss-ei", **SMALL, improvement="log")),
    "eulbo-kg": (choice("eulbo-kg", **SMALL), choice("informed-search", base=choice("eulbo-kg", **SMALL))),
}


@pytest.mark.parametrize("name", BASES)
def test_queries_do_not_depend_on_it(name: str) -> None:
    place, (base, audit) = box(), BASES[name]
    alone, watched = build_method(base["name"], base["options"], place.domain), audited(base, audit, place)
    history = place.history
    for seed in range(3):
        expected, found = ask(alone, history, seed=seed), ask(watched, history, seed=seed)
        assert torch.equal(found.X, expected.X)
        assert found.notes.items() >= expected.notes.items()
        Y = expected.X.sin().sum(-1, keepdim=True)
        for method in (alone, watched):
            method.tell(expected.X, Y)
        history = history.join(expected.X, Y)


def test_queries_in_company_do_not_depend_on_it() -> None:
    place, (base, audit) = box(), BASES["eulbo-ei"]
    watched = [audited(base, audit, place) for _ in range(2)]
    answers = type(watched[0]).ask_many([question(one, place.history, 2, seed) for seed, one in enumerate(watched)])
    for seed, answer in enumerate(answers):
        assert isinstance(answer, Proposal)
        alone = ask(build_method(base["name"], base["options"], place.domain), place.history, 2, seed)
        torch.testing.assert_close(answer.X, alone.X, rtol=1e-6, atol=1e-6)
        assert answer.notes["utility_of_audit"] > 0


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_it_notes_what_both_searches_find(q: int, seed: int) -> None:
    place = box()
    poor, good = choice("ei", **(QUICK | RANDOM)), choice("logei", **(QUICK | THOROUGH))
    lost = ask(audited(poor, good, place), place.history, q, seed).notes
    assert 0 <= lost["utility_of_search"] < 0.9 * lost["utility_of_audit"]
    kept = ask(audited(good | {"name": "ei"}, poor, place), place.history, q, seed).notes
    assert kept["utility_of_search"] > kept["utility_of_audit"] / 0.9


def test_the_utility_is_the_bases() -> None:
    place = box()
    proposal = ask(audited(choice("ei", **QUICK), choice("logei", **(QUICK | THOROUGH)), place), place.history)
    assert proposal.acquisition
    assert proposal.notes["utility_of_search"] == pytest.approx(float(proposal.acquisition(proposal.X)))
    everywhere = proposal.acquisition(torch.rand(4_000, place.domain.space.dim, dtype=torch.float64)).max()
    assert proposal.notes["utility_of_audit"] > 0.99 * float(everywhere)


def test_a_table_is_searched_by_both_in_full() -> None:
    place = table()
    notes = ask(audited(*BASES["ei"], place), place.history).notes
    assert notes["utility_of_search"] == pytest.approx(notes["utility_of_audit"])


def test_both_search_the_same_region() -> None:
    place = box()
    within = choice("audited-search", base=choice("ei", **QUICK), audit=choice("logei", **(QUICK | THOROUGH)))
    region = build_method("trust-region", {"base": within, "initial_length": 0.02}, place.domain)
    notes = ask(region, place.history).notes
    everywhere = ask(audited(within["options"]["base"], within["options"]["audit"], place), place.history).notes
    assert 0 < notes["utility_of_audit"] < 0.9 * everywhere["utility_of_audit"]


@pytest.mark.parametrize(
    ("base", "audit"), [("ei", "elbo-ei"), ("elbo-ei", "logei"), ("ei", "locbo"), ("trust-region", "moss-ei")]
)
def test_another_surrogate_is_refused(base: str, audit: str) -> None:
    choices = choice(base) if base != "trust-region" else choice(base, base="ei")
    with pytest.raises(PlumblineError, match=f"audit '{audit}' has another surrogate than base '{base}'"):
        audited(choices, choice(audit), box())


@pytest.mark.parametrize("audit", ["cehvi", "cucb", "eic", "random", "no-such"])
def test_an_audit_that_cannot_search_is_refused(audit: str) -> None:
    with pytest.raises(PlumblineError, match=f"audit '{audit}' does not provide|unknown method 'no-such'"):
        audited(choice("ei"), choice(audit), box())
