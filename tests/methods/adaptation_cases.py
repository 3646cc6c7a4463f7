"""What tests of methods that adapt from round to round have in common."""

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from situations import BOX, Situation, ask, objective, rows

from plumbline.core.history import History
from plumbline.methods.ask import AskRequest
from plumbline.methods.base import Domain, Method, Proposal
from plumbline.spaces.box import Box


def constant(n: int = 5) -> Situation:
    """Return a situation in which every observation is the same."""
    X = rows(n, 0)
    return Situation(Domain(Box(BOX)), History(X, torch.full((n, 1), 3.0, dtype=torch.float64), n))


def answered(method: Method, history: History, q: int = 1, seed: int = 5) -> tuple[Proposal, list[str]]:
    """Return a proposal, and the events of its round."""
    question = AskRequest(method, history, q, torch.Generator().manual_seed(seed))
    proposal = question.ask()
    assert isinstance(proposal, Proposal), proposal
    return proposal, question.events


def restored(make: Callable[[], Method], method: Method) -> Method:
    """Return another instance that goes on from a method's state, which was on a disk in between."""
    file = io.BytesIO()
    torch.save(method.state_dict(), file)
    file.seek(0)
    other = make()
    other.load_state_dict(torch.load(file, weights_only=True))
    return other


def check_resumed(make: Callable[[], Method], place: Situation, q: int = 1, rounds: int = 6) -> list[dict[str, Any]]:
    """Check that a method that is killed after each round asks for what it would have asked for; return its notes."""
    whole, resumed, history, notes = make(), make(), place.history, []
    for seed in range(rounds):
        proposal, again = ask(whole, history, q, seed), ask(resumed, history, q, seed)
        assert torch.equal(proposal.X, again.X)
        assert proposal.notes == again.notes
        Y = objective(proposal.X) + (40.0 if seed % 3 == 1 else -40.0)
        whole.tell(proposal.X, Y)
        history = history.join(proposal.X, Y)
        resumed = restored(make, whole)
        notes.append(proposal.notes)
    return notes


def failing(monkeypatch: pytest.MonkeyPatch, method: Any, name: str, error: Exception) -> None:
    """Let what a method does end in an error."""

    def broken(*args: Any, **others: Any) -> None:
        raise error

    monkeypatch.setattr(method, name, broken)


def with_queries(place: Situation, queries: int) -> Situation:
    """Return a situation whose last observations were asked for."""
    return replace(place, history=replace(place.history, initial=len(place.history) - queries))
