"""Conformal methods in lockstep: each seed has the numbers that it has alone, to the last bit."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lockstep_cases import assert_same_proposal
from situations import BOX, QUICK_CONFORMAL, box, objective, rows, table

from plumbline.core.history import History
from plumbline.methods.ask import AskRequest
from plumbline.methods.base import Domain, Proposal, build_method
from plumbline.methods.conformal import in_lockstep
from plumbline.methods.conformal.method import ConformalMethod
from plumbline.methods.conformal.walks import Chains, Walked, walked
from plumbline.spaces.blocks import Blocks
from plumbline.spaces.stepped import Stepped

NOTHING = History(torch.empty(0, 2).double(), torch.empty(0, 1).double(), 0)

SEARCH = QUICK_CONFORMAL["search"]


def asked(
    name: str, options: dict[str, Any], domain: Domain, sizes: list[int], together: int, q: int = 1, seed: int = 0
) -> list[AskRequest]:
    """Requests of seeds that have observed so many points each."""
    requests = []
    for i, n in enumerate(sizes):
        method = build_method(name, QUICK_CONFORMAL | options, domain)
        method.lockstep_size = together
        X = domain.space.nearest(rows(n, seed + i), NOTHING)
        noise = torch.randn(n, 1, generator=torch.Generator().manual_seed(seed + i), dtype=torch.float64)
        history = History(X, objective(X) + 3 * noise, min(n, 4))
        requests.append(AskRequest(method, history, q, torch.Generator().manual_seed(seed + i)))
    return requests


def assert_the_same(
    name: str, options: dict[str, Any], domain: Domain, sizes: list[int], q: int = 1, seed: int = 0
) -> None:
    """What is proposed, noted, forecast and drawn is what it is alone."""
    apart, joint = (asked(name, options, domain, sizes, together, q, seed) for together in (1, len(sizes)))
    answers = zip(ConformalMethod.ask_many(apart), ConformalMethod.ask_many(joint), apart, joint, strict=True)
    for alone, one, theirs, its in answers:
        assert isinstance(alone, Proposal), alone
        assert isinstance(one, Proposal), one
        assert_same_proposal(one, alone)
        assert its.events == theirs.events
        assert torch.equal(its.stream.get_state(), theirs.stream.get_state())
        assert one.acquisition is not None
        assert alone.acquisition is not None
        assert torch.equal(one.acquisition(rows(5, 9)), alone.acquisition(rows(5, 9)))
        assert one.predict is not None
        assert alone.predict is not None
        mine, other = one.predict(rows(5, 9)), alone.predict(rows(5, 9))
        assert torch.equal(mine.width(0.3), other.width(0.3))


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "cei": ("cei", {"jitter": 0.1}),
    "cucb": ("cucb", {}),
    "cnei": ("cnei", {}),
    "code": ("cei", {"variant": "code", "search": {**SEARCH, "steps": 8, "burn_in": 3}}),
    "constant": ("cnei", {"variant": ["constant-labels"]}),
    "constant bound": ("cucb", {"variant": ["constant-labels"]}),
    "share": ("cnei", {"incumbent_share": 0.75}),
    "stale": ("cei", {"stale": True}),
    "polished": ("cucb", {"search": {**SEARCH, "polish": 5}}),
    "masked": ("cucb", {"alpha": 0.01}),
}


@pytest.mark.parametrize(("case", "q"), [*((case, 1) for case in CASES), ("cucb", 2)])
def test_no_digit_of_a_seed_depends_on_its_company(case: str, q: int) -> None:
    """Three of the seeds have data sets of one size, one has another; batches are searched seed by seed."""
    assert_the_same(*CASES[case], box().domain, [9, 9, 7, 9], q)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**31),
    name=st.sampled_from(["cei", "cucb", "cnei"]),
    kernel=st.sampled_from(["rbf", "matern12", "matern32", "matern52"]),
    priors=st.sampled_from(["botorch", "botorch-0.9", "conformal", "none"]),
    sizes=st.lists(st.integers(2, 12), min_size=2, max_size=10),
    candidates=st.integers(1, 40),
)
@settings(max_examples=8)
def test_nor_on_kernels_priors_labels_and_numbers_of_points(
    seed: int, name: str, kernel: str, priors: str, sizes: list[int], candidates: int
) -> None:
    options = {"model": {"kernel": kernel, "priors": priors}, "posterior": {"candidates": candidates}}
    assert_the_same(name, options, box().domain, sizes, seed=seed)


SPACES = {
    "table": table().domain.space,
    "blocks": Blocks(BOX, ((0,), (1,)), BOX.mean(dim=0)),
    "steps": Stepped(BOX, torch.tensor([0.5, 0.0], dtype=torch.float64)),
}


@pytest.mark.parametrize("space", SPACES)
def test_nor_where_seeds_are_searched_one_by_one(space: str) -> None:
    assert_the_same("cucb", {}, Domain(SPACES[space], box().domain.outcomes), [7, 7, 7])


@pytest.mark.parametrize(("q", "most", "walks"), [(1, 16, [3, 1]), (1, 2, [2, 1, 1]), (2, 16, [1, 1, 1, 1])])
def test_chains_of_data_sets_of_one_size_walk_together(
    q: int, most: int, walks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for batches, and so many at most."""
    monkeypatch.setattr(in_lockstep, "AT_ONCE", most)
    numbers: list[int] = []

    def counting(searches: list[Chains]) -> list[Walked]:
        numbers.append(len(searches))
        return walked(searches)

    monkeypatch.setattr(in_lockstep, "walked", counting)
    monkeypatch.setattr("plumbline.methods.conformal.method.walked", counting)
    ConformalMethod.ask_many(asked("cucb", {}, box().domain, [9, 9, 7, 9], 4, q))
    assert sorted(numbers, reverse=True) == walks


def test_the_models_of_a_round_are_not_fitted_again_to_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    (request,) = asked("cucb", {}, box().domain, [9], 1)
    method = request.method
    assert isinstance(method, ConformalMethod)
    method.ask(request.history, 1, request.stream)
    fresh = build_method("cucb", QUICK_CONFORMAL, box().domain).predictor(request.history)
    fits = []
    fit = ConformalMethod.fit
    monkeypatch.setattr(ConformalMethod, "fit", lambda self, data: fits.append(len(data)) or fit(self, data))
    again, rest = method.predictor(request.history), method.predictor(History(rows(5, 1), objective(rows(5, 1))))
    assert fits == [5]
    assert fresh is not None
    X = rows(4, 3)
    assert torch.equal(again(X).mean, fresh(X).mean)
    assert not torch.equal(rest(X).mean, fresh(X).mean)
