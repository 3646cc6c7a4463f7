"""Sparse methods that are small and quick, alone and in trust regions, and how a trial asks them."""

from typing import Any

import torch
from situations import QUICK, Situation, objective

from plumbline.core.history import History
from plumbline.methods.ask import AskRequest
from plumbline.methods.base import Method, build_method
from plumbline.methods.composed import Round
from plumbline.methods.proposal import Proposal

SMALL: dict[str, Any] = {**QUICK, "inducing": 8, "training": {"epochs": 3, "batch": 4}}


def made(name: str, place: Situation, **options: Any) -> Any:
    return build_method(name, {**SMALL, **options}, place.domain)


def in_region(name: str, place: Situation, own: dict[str, Any] | None = None, **options: Any) -> Any:
    base = {"name": name, "options": {**SMALL, **options}}
    return build_method("trust-region", {"base": base, **(own or {})}, place.domain)


def question(method: Method, history: History, q: int = 1, seed: int = 5) -> AskRequest:
    return AskRequest(method, history, q, torch.Generator().manual_seed(seed))


def ask(method: Method, history: History, q: int = 1, seed: int = 5) -> Proposal:
    """Ask as a trial does that runs alone."""
    (answer,) = type(method).ask_many([question(method, history, q, seed)])
    assert isinstance(answer, Proposal), answer
    return answer


def played(method: Method, history: History, rounds: int, q: int = 1, offset: float = 0.0) -> History:
    for seed in range(rounds):
        X = ask(method, history, q, seed).X
        Y = objective(X) + offset
        method.tell(X, Y)
        history = history.join(X, Y)
    return history


def round_of(place: Situation, history: History | None = None, seed: int = 5) -> Round:
    history = history or place.history
    return Round(history, history, place.domain.space, 1, torch.Generator().manual_seed(seed))
