"""Two domains with data, a box and a table of rows, and how a trial asks there."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from plumbline.methods.base import Domain, History, Method, Proposal

BOX = torch.tensor([[-5.0, 0.0], [10.0, 15.0]], dtype=torch.float64)

QUICK: dict[str, Any] = {"search": {"restarts": 1, "raw_samples": 8, "maxiter": 5}, "mc_samples": 8}
"""A search that is over soon; its quality is not what is tested."""


def objective(X: Tensor) -> Tensor:
    """Return something smooth, in units far from standard ones: `n x d` in, `n x 1` out."""
    return 200 + 30 * (torch.sin(X[:, :1] / 2) - (X[:, 1:2] / 10 - 0.4) ** 2)


def rows(n: int, seed: int) -> Tensor:
    """Return `n x 2` points of the box."""
    U = torch.rand(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return BOX[0] + (BOX[1] - BOX[0]) * U


@dataclass(frozen=True)
class Situation:
    """Where a method is asked, and what it knows."""

    domain: Domain
    history: History


def box(n: int = 6) -> Situation:
    X = rows(n, 0)
    return Situation(Domain(BOX), History(X, objective(X)))


def table(size: int = 20, seen: int = 6) -> Situation:
    X = rows(size, 1)
    known = X[torch.randperm(size, generator=torch.Generator().manual_seed(2))[:seen]]
    return Situation(Domain(BOX, X), History(known, objective(known)))


def ask(method: Method, history: History, q: int, seed: int = 5) -> Proposal:
    """Ask inside a forked global stream that is seeded from the method's own, as `plumbline.trials` does."""
    stream = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream.initial_seed() % 2**31)
        return method.ask(history, q, stream)
