"""A public library as a method: in each round its optimiser is built anew, told the history, and asked."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.core.seeding import draw_seed
from plumbline.core.streams import kept_streams, seed_streams
from plumbline.methods.base import Domain, Method, Proposal, SpaceKind, Takes

Array = NDArray[np.float64]


class Optimiser(ABC):
    """An optimiser of a library in the middle of its run.

    Work that a user of the library does once a round (a fit, a search) is in `ask`.
    """

    @abstractmethod
    def tell(self, x: Array, y: float) -> None:
        """Receive the value `y`, to be maximised and NaN where it failed, at `x` (`d`).

        The point is the first one asked for whose value is not told yet; a new one where there is none.
        """

    @abstractmethod
    def ask(self, q: int) -> Array:
        """Return the points to evaluate next, `q x d`."""

    def memory(self) -> dict[str, Any]:
        """Return what the next optimiser cannot learn from the history: tensors, numbers and text."""
        return {}

    def remember(self, memory: dict[str, Any]) -> None:  # noqa: B027 - a hook
        """Take over the `memory` of the optimiser of the round before, ahead of the history."""

    def close(self) -> None:  # noqa: B027 - a hook
        """Remove the files of the optimiser, where it has some."""


@contextmanager
def quiet() -> Iterator[None]:
    """Keep all loggers below errors silent inside the block: libraries report each step."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def names(bounds: Array) -> list[str]:
    """Return names of the inputs, for libraries that want some; `bounds` is `2 x d`."""
    return [f"x{i}" for i in range(bounds.shape[1])]


class PeerMethod(Method):
    """A method of one objective over a box whose proposals are a library's.

    Where no evaluation has succeeded yet it proposes uniform points.
    """

    takes: ClassVar[Takes] = "one objective"
    spaces: ClassVar[SpaceKind] = "a box"

    @property
    def sides(self) -> Array:
        """The bounds, `2 x d`."""
        return self.domain.bounds.numpy()

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return the `q` points that the library proposes; its global streams are those of this generator."""
        if not bool(torch.isfinite(history.Y).any()):
            return Proposal(self.domain.space.draw(q, history, generator))
        seed = draw_seed(generator)
        with kept_streams(), quiet():
            seed_streams(seed)
            return self.propose(history, q, seed)

    @abstractmethod
    def propose(self, history: History, q: int, seed: int) -> Proposal:
        """Return the proposal of a round whose history has a value; all randomness is of `seed`."""

    def allowed(self, X: Tensor, history: History) -> Tensor:
        """Return the points `X` (`q x d`) as points of the space: libraries map to the unit cube and back."""
        return self.domain.space.nearest(X.clamp(*self.domain.bounds), history)


class OptimiserMethod(PeerMethod):
    """A peer with an ask/tell interface.

    The seconds of a round are those of `ask`: a user who keeps the optimiser does not tell it all again.
    """

    def __init__(self, domain: Domain, options: Any) -> None:
        super().__init__(domain, options)
        self.state: dict[str, Any] = {}

    @abstractmethod
    def optimiser(self, seed: int, q: int) -> Optimiser:
        """Return a new optimiser of the domain, without data, that is asked for `q` points at a time."""

    def propose(self, history: History, q: int, seed: int) -> Proposal:
        """Return the `q` points of a new optimiser that was told the history."""
        with closing(self.optimiser(seed, q)) as optimiser:
            optimiser.remember(self.state)
            for x, y in zip(history.X.numpy(), history.Y[:, 0].tolist(), strict=True):
                optimiser.tell(x, y)
            started = perf_counter()
            X = torch.from_numpy(np.asarray(optimiser.ask(q), dtype=np.float64))
            seconds = perf_counter() - started
            self.state = optimiser.memory()
        return Proposal(self.allowed(X, history), seconds={"acquire": seconds})

    def state_dict(self) -> dict[str, Any]:
        """Return the memory of the last optimiser."""
        return dict(self.state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the memory of the last optimiser."""
        self.state = dict(state)
