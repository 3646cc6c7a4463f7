"""Two domains with data, a box and a table of rows, and how a trial asks there."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from plumbline.core.history import History
from plumbline.core.outcomes import Outcome, Role
from plumbline.methods.base import Domain, Method, Proposal
from plumbline.spaces.box import Box
from plumbline.spaces.table import Table

BOX = torch.tensor([[-5.0, 0.0], [10.0, 15.0]], dtype=torch.float64)

REF_POINT = torch.tensor([150.0, -4.0], dtype=torch.float64)
"""What two outcomes must exceed; most rows do."""

QUICK: dict[str, Any] = {"search": {"restarts": 1, "raw_samples": 8, "maxiter": 5}, "mc_samples": 8}
"""A search that is over soon; its quality is not what is tested."""

QUICK_ASCENT: dict[str, Any] = {**QUICK, "fantasies": 8, "points": 32, "ascent": {"steps": 5}}
"""The same of the knowledge gradient by stochastic ascent."""

QUICK_CONFORMAL: dict[str, Any] = {
    "posterior": {"candidates": 16},
    "ratio": {"hidden": 8, "steps": 5},
    "search": {"chains": 2, "steps": 6, "burn_in": 2, "raw_samples": 8},
}
"""The same of conformal methods."""


def objective(X: Tensor, outcomes: int = 1) -> Tensor:
    """Return something smooth, in units far from standard ones: `n x 2` in, `n x outcomes` out (at most two)."""
    first = 200 + 30 * (torch.sin(X[:, :1] / 2) - (X[:, 1:2] / 10 - 0.4) ** 2)
    second = -1 - torch.cos(X[:, :1] / 3) - (X[:, 1:2] / 10 - 0.9) ** 2
    return torch.cat([first, second], dim=-1)[:, :outcomes]


def rows(n: int, seed: int) -> Tensor:
    """Return `n x 2` points of the box."""
    U = torch.rand(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return BOX[0] + (BOX[1] - BOX[0]) * U


@dataclass(frozen=True)
class Situation:
    """Where a method is asked, and what it knows."""

    domain: Domain
    history: History

    @property
    def outcomes(self) -> int:
        return self.history.Y.shape[-1]


def box(n: int = 6, outcomes: int = 1, second: Role = "objective") -> Situation:
    X = rows(n, 0)
    return Situation(_domain(None, outcomes, second), History(X, objective(X, outcomes), n))


def table(size: int = 20, seen: int = 6, outcomes: int = 1, second: Role = "objective") -> Situation:
    X = rows(size, 1)
    known = X[torch.randperm(size, generator=torch.Generator().manual_seed(2))[:seen]]
    return Situation(_domain(X, outcomes, second), History(known, objective(known, outcomes), seen))


def _domain(candidates: Tensor | None, outcomes: int, second: Role) -> Domain:
    return Domain(Box(BOX) if candidates is None else Table(BOX, candidates), outcomes_of(outcomes, second))


def outcomes_of(outcomes: int, second: Role = "objective") -> tuple[Outcome, ...]:
    """Return so many objectives, or an objective and a constraint; several objectives have a reference point."""
    if second != "objective":
        return (Outcome("objective"), Outcome("constraint", second))
    if outcomes == 1:
        return (Outcome("objective"),)
    return tuple(Outcome(f"objective-{i}", reference=REF_POINT[i].item()) for i in range(outcomes))


@contextmanager
def stream_of_its_own(stream: torch.Generator) -> Iterator[None]:
    """Fork the global stream and seed it from another, as `plumbline.trials` does."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream.initial_seed() % 2**31)
        yield


def ask(method: Method, history: History, q: int, seed: int = 5) -> Proposal:
    """Return what a method proposes."""
    stream = torch.Generator().manual_seed(seed)
    with stream_of_its_own(stream):
        return method.ask(history, q, stream)


def recommend(method: Method, history: History, seed: int = 5) -> Tensor:
    """Return what a method holds to be the optimum."""
    stream = torch.Generator().manual_seed(seed)
    with stream_of_its_own(stream):
        return method.recommend(history, stream)


LINE = torch.tensor([[0.0], [1.0]], dtype=torch.float64)


def on_a_line() -> Situation:
    """Return five observations of a sine on the unit interval."""
    X = torch.tensor([[0.05], [0.3], [0.45], [0.8], [0.95]], dtype=torch.float64)
    return Situation(Domain(Box(LINE)), History(X, 10 * torch.sin(9 * X)))
