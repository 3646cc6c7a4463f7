"""Peers, and whether their libraries are there."""

from typing import Any

import pytest
from situations import BOX, rows
from torch import Tensor

from plumbline.core.history import History
from plumbline.core.libraries import absent
from plumbline.methods.base import Method, build_method, methods
from plumbline.methods.peers.adapter import PeerMethod

CASES: list[tuple[str, dict[str, Any]]] = [
    ("botorch-loop", {"num_restarts": 2, "raw_samples": 16}),
    ("optuna", {"sampler": "tpe"}),
    ("optuna", {"sampler": "gp"}),
    ("cma-es", {}),
    ("skopt", {"acquisition": "gp_hedge"}),
    ("skopt", {"acquisition": "EI"}),
    ("ax", {}),
    ("bayesian-optimization", {}),
    ("smac", {}),
    ("ask-tell", {"optimiser": "ask_tell_cases:Steps"}),
]

PEAK = BOX.mean(dim=0)


def peers() -> list[str]:
    """Return the names of the registered peers, but for `ask-tell`, which is no library's."""
    peers = {name for name, entry in methods.entries().items() if issubclass(entry.build, PeerMethod)}  # type: ignore[arg-type]
    return sorted(peers - {"ask-tell"})


def skip_if_absent(name: str) -> None:
    """Skip a test of a peer, and say why, where a library of it is not installed."""
    for library in absent(methods[name].build.libraries):  # type: ignore[attr-defined]
        pytest.skip(f"{library} is not installed")


def installed(name: str, options: dict[str, Any], place: Any) -> Method:
    """Build a peer for a situation, or skip the test."""
    skip_if_absent(name)
    return build_method(name, options, place.domain)


def hill(X: Tensor) -> Tensor:
    """Return a concave function with its maximum at `PEAK`: `n x 2` in, `n x 1` out."""
    return -((X - PEAK) / 5).square().sum(dim=-1, keepdim=True)


def on_a_hill(n: int = 25, initial: int | None = None) -> History:
    """Return observations of `hill` at random points."""
    X = rows(n, 0)
    return History(X, hill(X), n if initial is None else initial)
