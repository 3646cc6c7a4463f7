"""A method as a surrogate, a utility and a search; the one loop that all of them share."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.seeding import draw_seed
from plumbline.methods.ask import CPU, AskRequest
from plumbline.methods.base import Method, Predictor, Proposal
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
        device: where it may be computed; everything else is on the CPU.
    """

    history: History
    data: History
    space: Space
    q: int
    generator: Generator
    device: torch.device = CPU

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
        observed: `q x m`, which outcomes are asked for; None for all.
        ends: `r x q x d`, where each climb or chain of the search ended, `X` first; None where there were none.
    """

    X: Tensor
    utility: AcquisitionFunction
    surrogate: Surrogate
    notes: dict[str, float] = field(default_factory=dict)
    observed: Tensor | None = None
    ends: Tensor | None = None


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
        ends = space.ends(utility, round.q, self.options.search, round.seed)
        return Choice(ends[0], utility, surrogate, ends=ends)

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

    def model_free_start(self, history: History, q: int, generator: Generator) -> Proposal | None:
        """Return points to ask for without a surrogate in this round; None to go on with one."""
        return None

    def where(self, surrogate: Surrogate, round: Round) -> Space:
        """Return where to look in this round."""
        return round.space

    def register_forecast(self, proposal: Proposal) -> None:
        """Take note of what is proposed, before anything is observed."""

    @classmethod
    def models(cls, asked: "Sequence[tuple[ComposedMethod[Surrogate], Round]]") -> list[Surrogate]:
        """Return the surrogate of each of some methods in its round; a class that can fit several at once does it here.

        Unlike `fit`, which knows the data alone, it may go on from earlier rounds.
        """
        return [method.fit(round.data) for method, round in asked]

    @classmethod
    def refine(
        cls, chosen: "Sequence[tuple[ComposedMethod[Surrogate], Choice[Surrogate], Round]]"
    ) -> list[Choice[Surrogate]]:
        """Return what is made of the choices of some methods after their searches; by default they stay."""
        return [choice for _, choice, _ in chosen]

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return `q` points of great utility."""
        return self._answered([Turn(self, history, q, generator)])[0]

    @classmethod
    def ask_many(cls, questions: Sequence[AskRequest]) -> list[Proposal | Exception]:
        """Return an answer to each question, or the error that it met: surrogates are fitted, and choices refined,
        together."""
        if cls.alone(questions):
            return super().ask_many(questions)
        turns = [Turn(cast(Self, one.method), one.history, one.q, one.stream, one.device, one) for one in questions]
        return list(cls._answered(turns))

    @classmethod
    def alone(cls, questions: Sequence[AskRequest]) -> bool:
        """Return whether questions are answered one by one, as methods do that gain nothing from company."""
        return all(question.method.together == 1 for question in questions)

    @classmethod
    def _answered(cls, turns: "Sequence[Turn[Any]]") -> list[Proposal]:
        """Play some turns: what is done together is done outside of any question's surroundings."""
        for turn in turns:
            with turn.surroundings():
                turn.begin()
        playing = [turn for turn in turns if turn.proposal is None]
        if playing:
            started = perf_counter()
            surrogates = cls.models([(turn.method, turn.now) for turn in playing])
            fitted = (perf_counter() - started) / len(playing)
            for turn, surrogate in zip(playing, surrogates, strict=True):
                with turn.surroundings():
                    turn.choose(surrogate, fitted)
            started = perf_counter()
            choices = cls.refine([(turn.method, turn.chosen, turn.now) for turn in playing])
            refined = (perf_counter() - started) / len(playing)
            for turn, choice in zip(playing, choices, strict=True):
                with turn.surroundings():
                    turn.propose(choice, refined)
        return [cast(Proposal, turn.proposal) for turn in turns]

    def turn_round(self, history: History, q: int, generator: Generator, device: torch.device = CPU) -> Round:
        """Return a round of this method.

        Raises:
            PlumblineError: an outcome that nothing can be fitted to.
        """
        round = Round(history, self.seen(history), self.domain.space, q, generator, device)
        self._refuse_unobserved(round)
        return round

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


@dataclass
class Turn(Generic[Surrogate]):
    """One method's way through a round.

    Attributes:
        method: who is asked.
        history, q, generator, device: what it is asked with.
        question: whose surroundings it is answered in; None for those that are.
        proposal: the answer, once there is one.
    """

    method: ComposedMethod[Surrogate]
    history: History
    q: int
    generator: Generator
    device: torch.device = CPU
    question: AskRequest | None = None
    proposal: Proposal | None = None

    def surroundings(self) -> AbstractContextManager[None]:
        """Return the surroundings of its question."""
        return nullcontext() if self.question is None else self.question.surroundings()

    def begin(self) -> None:
        """Ask for points without a surrogate, or make ready to fit one."""
        self.proposal = self.method.model_free_start(self.history, self.q, self.generator)
        if self.proposal is None:
            self.now = self.method.turn_round(self.history, self.q, self.generator, self.device)

    def choose(self, surrogate: Surrogate, fitted: float) -> None:
        """Search where the surrogate's utility is greatest; it took `fitted` seconds to fit."""
        started = perf_counter()
        space = self.method.where(surrogate, self.now)
        self.cut = space is not self.now.space
        self.now = replace(self.now, space=space)
        self.chosen = self.method.search(self.method.utility(surrogate, self.now), surrogate, self.now)
        self.seconds = {"fit": fitted, "acquire": perf_counter() - started}

    def propose(self, choice: Choice[Surrogate], refined: float) -> None:
        """Make a proposal of a choice, which it took `refined` seconds to refine."""
        started = perf_counter()
        surface = surface_of(choice.utility)
        self.proposal = Proposal(
            choice.X,
            self.method.forecast(choice),
            confined(surface, self.now.space.bounds) if self.cut else surface,
            notes=self.method.notes(choice, self.now),
            observed=choice.observed,
            ends=choice.ends,
        )
        self.method.register_forecast(self.proposal)
        self.seconds["acquire"] += refined + perf_counter() - started
        self.proposal = replace(self.proposal, seconds=self.seconds)


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
