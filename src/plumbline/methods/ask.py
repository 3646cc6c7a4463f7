"""A request to a method, and the isolation in which it is answered."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Generator

from plumbline.core.history import History
from plumbline.methods.proposal import Proposal

CPU = torch.device("cpu")

ADVICE = ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning", "NumericsWarning")
"""Warnings that advise the programmer (BoTorch: prefer LogEI) and say nothing of this round's numbers."""


@contextmanager
def every_warning() -> Iterator[None]:
    """Let warnings come each time inside the block: those that torch gives once a process would tell a resumed trial
    from an uninterrupted one."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    warnings.simplefilter("always")
    try:
        yield
    finally:
        torch.set_warn_always(before)


def event_names(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return the kinds of numerical warnings of a round: jitter, retries, lost precision."""
    return sorted({warning.category.__name__ for warning in caught} - set(ADVICE))


class Asked(Protocol):
    """Who can be asked: a method."""

    lockstep_size: int

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return `q` points to evaluate next."""
        ...


@dataclass
class AskRequest:
    """What a trial asks its method in one round.

    Attributes:
        method: who is asked.
        history: what has been observed.
        q: how many points are wanted.
        stream: the randomness of this round.
        device: where the method may compute; history and proposal are on the CPU.
        events: kinds of the numerical warnings that came up in isolated blocks so far.
    """

    method: Asked
    history: History
    q: int
    stream: Generator
    device: torch.device = CPU
    events: list[str] = field(default_factory=list)

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Keep the warnings of the block as events, and the global random streams as they are outside of it.

        Some of BoTorch draws from the global stream: inside, it is one of this round's own.
        """
        gpus = [self.device] if self.device.type == "cuda" else []
        with warnings.catch_warnings(record=True) as caught, every_warning(), torch.random.fork_rng(devices=gpus):
            # Not `torch.manual_seed`: for each kind of device that is not there, it keeps a note of every call.
            seed = self.stream.initial_seed() % 2**31
            torch.default_generator.manual_seed(seed)
            if gpus:
                torch.cuda.manual_seed(seed)
            yield
        self.events = sorted({*self.events, *event_names(caught)})

    def ask(self) -> Proposal | Exception:
        """Return what the method proposes, or the error that it raised.

        Raises:
            torch.cuda.OutOfMemoryError: passes through, since fewer requests at a time may fit.
        """
        try:
            with self.isolated():
                return self.method.ask(self.history, self.q, self.stream)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:
            return error
