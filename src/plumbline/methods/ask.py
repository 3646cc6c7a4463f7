"""Ask requests to methods, and the isolation of their answers."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Generator

from plumbline.core.history import History
from plumbline.core.streams import seed_streams
from plumbline.methods.proposal import Proposal

CPU = torch.device("cpu")

ADVICE = ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning", "NumericsWarning")
"""Warnings that advise the programmer (BoTorch: prefer LogEI) and do not concern this round's numbers."""


@contextmanager
def every_warning() -> Iterator[None]:
    """Repeat warnings inside the block. Those that torch gives once a process would make the events of a resumed trial
    differ from those of an uninterrupted one."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    warnings.simplefilter("always")
    try:
        yield
    finally:
        torch.set_warn_always(before)


def event_names(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return the classes of numerical warnings of a round: jitter, retries, lost precision."""
    return sorted({warning.category.__name__ for warning in caught} - set(ADVICE))


class Askable(Protocol):
    """The interface of a method that answers requests."""

    lockstep_size: int

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return `q` points to evaluate next."""
        ...


@dataclass
class AskRequest:
    """A trial's request to its method in one round.

    Attributes:
        method: the method that answers.
        history: the observations.
        q: number of points.
        stream: random generator of this round.
        device: device for the method's computations; history and proposal are on the CPU.
        events: classes of the numerical warnings in isolated blocks so far.
    """

    method: Askable
    history: History
    q: int
    stream: Generator
    device: torch.device = CPU
    events: list[str] = field(default_factory=list)

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Record the warnings of the block as events, and restore torch's global random streams after it.

        Some of BoTorch draws from the global streams: the block seeds them from this round's stream.
        """
        gpus = [self.device] if self.device.type == "cuda" else []
        with warnings.catch_warnings(record=True) as caught, every_warning(), torch.random.fork_rng(devices=gpus):
            seed = self.stream.initial_seed() % 2**31
            seed_streams(seed)
            if gpus:
                torch.cuda.manual_seed(seed)
            yield
        self.events = sorted({*self.events, *event_names(caught)})

    def ask(self) -> Proposal | Exception:
        """Return the method's proposal, or the error that it raised.

        Raises:
            torch.cuda.OutOfMemoryError: fewer requests at a time may fit.
        """
        try:
            with self.isolated():
                return self.method.ask(self.history, self.q, self.stream)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:
            return error
