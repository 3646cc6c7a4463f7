"""A search with starts at the incumbent and at maximisers of posterior samples, around any method that climbs."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from situations import QUICK, Situation, box, objective, rows, table
from sparse_situations import SMALL, ask, question

from plumbline.core.errors import PlumblineError
from plumbline.methods.base import build_method
from plumbline.methods.proposal import Proposal
from plumbline.spaces import informed as spaces
from plumbline.spaces.box import Box
from plumbline.spaces.informed import InformedBox

BASES: dict[str, dict[str, Any]] = {
    "logei": QUICK,
    "elbo-ei": {**SMALL, "improvement": "log"},
    "moss-ei": {**SMALL, "improvement": "log"},
    "eulbo-ei": {**SMALL, "improvement": "log"},
    "eulbo-kg": SMALL,
}


def informed(name: str, place: Situation, wrapped: bool = False) -> Any:
    choice = {"name": "informed-search", "options": {"base": {"name": name, "options": BASES[name]}}}
    if wrapped:
        choice = {"name": "trust-region", "options": {"base": choice}}
    return build_method(choice["name"], choice["options"], place.domain)


@pytest.mark.parametrize(
    ("name", "q", "wrapped"),
    [("logei", 2, True), ("elbo-ei", 1, True), ("moss-ei", 2, False), ("eulbo-ei", 2, True), ("eulbo-kg", 1, True)],
)
def test_company_makes_no_difference(name: str, q: int, wrapped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spaces, "EXAMINED", 64)
    place = box()
    pair, alone = ([informed(name, place, wrapped) for _ in range(2)] for _ in range(2))
    histories = [place.history, place.history.join(rows(1, 9), objective(rows(1, 9)))]
    for seed in range(2):
        asked = [question(*one, q, seed) for one in zip(pair, histories, strict=True)]
        for i, answer in enumerate(type(pair[0]).ask_many(asked)):
            assert isinstance(answer, Proposal)
            own = ask(alone[i], histories[i], q, seed)
            torch.testing.assert_close(answer.X, own.X, rtol=1e-6, atol=1e-6)
            histories[i] = histories[i].join(own.X, objective(own.X))
            for method in (pair[i], alone[i]):
                method.tell(own.X, objective(own.X))


def test_the_region_that_is_searched_knows_the_incumbent_and_the_posterior() -> None:
    place = box()
    method = informed("elbo-ei", place)
    round = method.start_round(place.history, 1, torch.Generator().manual_seed(0))
    surrogate = method.steps.fit_round(round)
    space = method.steps.search_region(surrogate, round)
    assert type(space) is InformedBox
    assert torch.equal(space.bounds, place.domain.bounds)
    mean, _ = surrogate.posterior_moments(place.history.X, joint=False)
    assert torch.equal(space.incumbent, place.history.X[mean.argmax()])
    region = torch.stack([place.domain.bounds[0], place.domain.bounds.mean(0)])
    inner = method.steps.search_region(surrogate, replace(round, space=Box(region)))
    assert torch.equal(inner.bounds, region)


def test_a_table_is_searched_as_without_it() -> None:
    place = table()
    with_it = informed("elbo-ei", place)
    without = build_method("elbo-ei", BASES["elbo-ei"], place.domain)
    assert torch.equal(ask(with_it, place.history).X, ask(without, place.history).X)


@pytest.mark.parametrize("base", ["cehvi", "cucb", "eic", "random"])
def test_what_has_no_single_posterior_is_refused(base: str) -> None:
    with pytest.raises(PlumblineError, match=f"base {base!r} does not provide .*: use .*eulbo-ei"):
        build_method("informed-search", {"base": {"name": base}}, box().domain)
