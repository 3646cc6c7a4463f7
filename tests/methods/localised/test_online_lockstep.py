"""LOCBO and OCBO in lockstep, after rounds that moved the thresholds of each seed in its own way."""

from typing import Any

import pytest
import torch
from lockstep_cases import assert_same_proposal
from situations import BOX, QUICK, ask, box, objective, rows, table

from plumbline.core.history import History
from plumbline.methods.ask import AskRequest
from plumbline.methods.base import Domain, Proposal, build_method
from plumbline.methods.localised.online import OnlineMethod
from plumbline.spaces.blocks import Blocks
from plumbline.spaces.stepped import Stepped

LOCAL = {"kappa": 2.0, "lengthscale": 4.0, "eta0": 0.05}

NOTHING = History(torch.empty(0, 2).double(), torch.empty(0, 1).double(), 0)

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "locbo": ("locbo", {}),
    "cube": ("locbo", {"units": "cube", "online": LOCAL | {"lengthscale": 0.5}}),
    "flat": ("locbo", {"online": LOCAL | {"lengthscale": float("inf")}}),
    "ucb": ("locbo-ucb", {}),
    "ocbo": ("ocbo", {"levels": 3}),
    "zero": ("locbo", {"label_mean": "zero", "tails": "as-coded"}),
    "redrawn": ("locbo", {"integral": "redrawn"}),
    "rarely": ("locbo", {"refit_every": 2}),
}


def played(name: str, options: dict[str, Any], domain: Domain, seed: int) -> tuple[OnlineMethod, History]:
    """Return a method after two rounds, whose events depend on the seed, and the history then."""
    method = build_method(name, {"online": LOCAL} | QUICK | options, domain)
    assert isinstance(method, OnlineMethod)
    X = domain.space.nearest(rows(6, 30 + seed), NOTHING)
    history = History(X, objective(X), len(X))
    for i in range(2):
        proposal = ask(method, history, 1, seed=seed + i)
        Y = objective(proposal.X) + (1e3 if (seed + i) % 2 else 0.0)
        method.tell(proposal.X, Y)
        history = history.join(proposal.X, objective(proposal.X))
    return method, history


def answers(case: str, domain: Domain, q: int, together: int) -> list[Proposal]:
    requests = []
    for seed in range(3):
        method, history = played(*METHODS[case], domain, seed)
        method.lockstep_size = together
        requests.append(AskRequest(method, history, q, torch.Generator().manual_seed(seed)))
    found = OnlineMethod.ask_many(requests)
    assert all(isinstance(one, Proposal) for one in found), found
    return found  # type: ignore[return-value]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "q"), [*((case, 1) for case in METHODS), ("locbo", 2), ("redrawn", 2)])
def test_no_digit_of_a_seed_depends_on_its_company(case: str, q: int) -> None:
    for alone, joint in zip(*(answers(case, box().domain, q, size) for size in (1, 3)), strict=True):
        assert_same_proposal(joint, alone)
        assert (joint.ends is None) == (q > 1)


SPACES = {
    "table": table().domain.space,
    "blocks": Blocks(BOX, ((0,), (1,)), BOX.mean(dim=0)),
    "steps": Stepped(BOX, torch.tensor([0.5, 0.0], dtype=torch.float64)),
}


@pytest.mark.slow
@pytest.mark.parametrize("space", SPACES)
def test_nor_where_seeds_are_searched_one_by_one(space: str) -> None:
    domain = Domain(SPACES[space], box().domain.outcomes)
    for alone, joint in zip(*(answers("locbo", domain, 1, size) for size in (1, 3)), strict=True):
        assert torch.equal(joint.X, alone.X)
