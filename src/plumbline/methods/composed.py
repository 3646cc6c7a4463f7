"""A method as a surrogate, a utility and a search; the one loop that all of them share."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, ClassVar, Generic, TypeVar

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Generator, Tensor

from plumbline.errors import PlumblineError
from plumbline.history import History
from plumbline.methods.base import Method, Predictor, Proposal
from plumbline.seeding import draw_seed
from plumbline.spaces.base import Space
from plumbline.spaces.search import inside

Surrogate = TypeVar("Surrogate")

Surface = Callable[[Tensor], Tensor]
"""Maps `n x d` points, each on its own, to their utilities, `n`."""


@dataclass(frozen=True)
class Round:
    """What is asked of a method in one round.

    Attributes:
        history: all that was observed.
        data: what the surrogate sees of it.
        space: where to look.
        q: how many points are wanted.
        generator: of the round's chance.
    """

    history: History
    data: History
    space: Space
    q: int
    generator: Generator

    @cached_property
    def seed(self) -> int:
        """A seed for libraries that want one: drawn when it is first asked for, and the same from then on."""
        return draw_seed(self.generator)


@dataclass(frozen=True)
class Choice(Generic[Surrogate]):
    """What a search chose, and what it left of the utility and the surrogate that it started from.

    Attributes:
        X: `q x d`.
        utility: as it was when `X` was chosen.
        surrogate: likewise.
        notes: numbers worth a column of a log.
    """

    X: Tensor
    utility: AcquisitionFunction
    surrogate: Surrogate
    notes: dict[str, float] = field(default_factory=dict)


def since(history: History, start: int) -> History:
    """Return the rows from `start` on."""
    return History(history.X[start:], history.Y[start:], max(history.initial - start, 0)) if start else history


def whole(history: History) -> History:
    """Return the rows of which every outcome was observed: the history itself where all of them are."""
    seen = torch.isfinite(history.Y).all(dim=-1)
    if bool(seen.all()):
        return history
    return History(history.X[seen], history.Y[seen], int(seen[: history.initial].sum()))


class ComposedMethod(Method, Generic[Surrogate]):
    """Fit a surrogate, build a utility, search for where it is greatest; a subclass says how each is done."""

    asks_again: ClassVar[bool] = False
    """Whether points are asked for again on purpose, to observe them more than once."""

    @abstractmethod
    def fit(self, data: History) -> Surrogate:
        """Return the surrogate of what has been observed."""

    @abstractmethod
    def utility(self, surrogate: Surrogate, round: Round) -> AcquisitionFunction:
        """Return the utility of a batch of points."""

    def search(self, utility: AcquisitionFunction, surrogate: Surrogate, round: Round) -> Choice[Surrogate]:
        """Return the points of greatest utility in the round's space; `options.search` says how hard to look."""
        space = round.space.settle(round.history, Generator().manual_seed(round.seed))
        X = space.maximise(utility, round.q, self.options.search, round.seed)
        return Choice(X, utility, surrogate)

    @abstractmethod
    def predictive(self, surrogate: Surrogate) -> Predictor:
        """Return the surrogate's predictions, for points distributed like its data."""

    def forecast(self, choice: Choice[Surrogate]) -> Predictor:
        """Return the predictions that the chosen points are judged by."""
        return self.predictive(choice.surrogate)

    def notes(self, choice: Choice[Surrogate], round: Round) -> dict[str, float]:
        """Return numbers worth a column of a log."""
        return choice.notes

    def lengthscales(self, surrogate: Surrogate) -> Tensor:
        """Return the lengthscales of the surrogate's kernel in the unit cube: `d`, or one for all inputs.

        Raises:
            PlumblineError: it has none.
        """
        raise PlumblineError("its surrogate has no lengthscales")

    def seen(self, history: History) -> History:
        """Return what the surrogate is to see of the history: the evaluations that did not fail."""
        return whole(history)

    def opening(self, history: History, q: int, generator: Generator) -> Proposal | None:
        """Return points to ask for without a surrogate in this round; None to go on with one."""
        return None

    def where(self, surrogate: Surrogate, round: Round) -> Space:
        """Return where to look in this round."""
        return round.space

    def promise(self, proposal: Proposal) -> None:
        """Take note of what is proposed, before anything is observed."""

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return `q` points of great utility."""
        opening = self.opening(history, q, generator)
        if opening is not None:
            return opening
        round = Round(history, self.seen(history), self.domain.space, q, generator)
        self._refuse_unobserved(round)
        started = perf_counter()
        surrogate = self.fit(round.data)
        fitted = perf_counter()
        proposal = self.propose(surrogate, round)
        return replace(proposal, seconds={"fit": fitted - started, "acquire": perf_counter() - fitted})

    def propose(self, surrogate: Surrogate, round: Round) -> Proposal:
        """Return `q` points of great utility under a given surrogate."""
        space = self.where(surrogate, round)
        cut = space is not round.space
        round = replace(round, space=space)
        choice = self.search(self.utility(surrogate, round), surrogate, round)
        surface = surface_of(choice.utility)
        proposal = Proposal(
            choice.X,
            self.forecast(choice),
            confined(surface, space.bounds) if cut else surface,
            notes=self.notes(choice, round),
        )
        self.promise(proposal)
        return proposal

    def predictor(self, history: History) -> Predictor:
        """Return predictions from `history` alone, for points distributed like its own."""
        return self.predictive(self.fit(whole(history)))

    def _refuse_unobserved(self, round: Round) -> None:
        """Raise PlumblineError where an outcome has no observation at all: nothing can be fitted to it."""
        ever, now = (torch.isfinite(one.Y).any(dim=0).tolist() for one in (round.history, round.data))
        for outcome, observed in zip(self.domain.outcomes, ever, strict=False):
            if not observed:
                raise PlumblineError(
                    f"outcome {outcome.name!r} ({outcome.role}) has no observation yet: nothing can be fitted to it; "
                    "let the initial design or an earlier proposal observe it"
                )
        if not all(now):
            raise PlumblineError(
                "nothing to fit a surrogate to: each evaluation failed, or observed some of the outcomes only"
            )


def surface_of(utility: AcquisitionFunction) -> Surface:
    """Return what maps `n x d` points, each on its own, to their values, `n`, without gradients."""

    def surface(points: Tensor) -> Tensor:
        with torch.no_grad():
            return utility(points.unsqueeze(-2))

    return surface


def confined(surface: Surface, region: Tensor) -> Surface:
    """Return a surface that is minus infinity outside of `region` (`2 x d`): nothing else was looked at."""

    def within(points: Tensor) -> Tensor:
        return surface(points).where(inside(points, region), -torch.inf)

    return within


def kernel_lengthscales(kernel: Any) -> Tensor:
    """Return the lengthscales of a kernel, scaled or not: `d`, or one for all inputs."""
    return getattr(kernel, "base_kernel", kernel).lengthscale.detach().flatten()
