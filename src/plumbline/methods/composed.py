"""Methods composed of a surrogate, an acquisition function and a search: the steps of a round, and the one loop."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, Generic, Self, TypeVar

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.outcomes import Outcome, Role
from plumbline.core.seeding import draw_seed
from plumbline.methods.ask import CPU
from plumbline.methods.base import Method, Predictor, Proposal
from plumbline.spaces.base import Space
from plumbline.spaces.box import Box, Climbs
from plumbline.spaces.search import MultiStart, Neighbourhood, inside

Surrogate = TypeVar("Surrogate")

Surface = Callable[[Tensor], Tensor]
"""Maps `n x d` points, each on its own, to their acquisition values, `n`."""


@dataclass(frozen=True)
class Round:
    """One request to a method.

    Attributes:
        history: all observations.
        data: rows of the history that the surrogate is fitted to.
        space: the search region.
        q: number of points to propose.
        generator: randomness of the round.
        device: where surrogates may be trained; all tensors outside of a training are on the CPU.
    """

    history: History
    data: History
    space: Space
    q: int
    generator: Generator
    device: torch.device = CPU

    @cached_property
    def seed(self) -> int:
        """A seed for libraries that need one, drawn at its first use and then fixed."""
        return draw_seed(self.generator)

    @cached_property
    def settled(self) -> Space:
        """The points that may be asked for in this round; what is drawn of them depends on `seed` alone."""
        return self.space.settle(self.history, Generator().manual_seed(self.seed))


@dataclass(frozen=True)
class Choice(Generic[Surrogate]):
    """The points that a search chose, with the acquisition function and the surrogate after the search.

    Attributes:
        X: `q x d`.
        utility: acquisition function that chose `X`.
        surrogate: surrogate that chose `X`.
        notes: numbers for the log.
        observed: `q x m`, the requested outcomes; None for all.
        ends: `r x q x d`, the end of each climb or chain of the search, `X` first; None where there were none.
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


def complete_rows(history: History) -> History:
    """Return the rows with all outcomes observed: the history itself if all rows are complete."""
    complete = torch.isfinite(history.Y).all(dim=-1)
    if bool(complete.all()):
        return history
    return History(history.X[complete], history.Y[complete], int(complete[: history.initial].sum()))


def failures_as_worst(history: History, outcomes: Sequence[Outcome]) -> History:
    """Return the history with the worst observation of each outcome where an evaluation failed, nothing being observed.

    Without them a surrogate does not know what was tried, and proposes the same points again.
    """
    observed = torch.isfinite(history.Y)
    failed = ~observed.any(dim=-1)
    if not bool(failed.any()) or not bool(observed.any(dim=0).all()):
        return history
    columns = zip(history.Y.unbind(-1), observed.unbind(-1), outcomes, strict=True)
    worst = torch.stack([_worst(y[there], outcome.role) for y, there, outcome in columns])
    return History(history.X, history.Y.where(~failed.unsqueeze(-1), worst), history.initial)


def _worst(y: Tensor, role: Role) -> Tensor:
    return y[y.abs().argmax()] if role == "zero" else y.min()


def no_start(history: History, q: int, generator: Generator) -> Proposal | None:
    """Return None: each round has a surrogate."""
    return None


def whole_space(surrogate: Any, round: Round) -> Space:
    """Return the space of the round."""
    return round.space


def unrefined(choice: Choice[Surrogate], round: Round) -> Choice[Surrogate]:
    """Return the choice of the search as it is."""
    return choice


@dataclass(frozen=True)
class Steps(Generic[Surrogate]):
    """The steps of a round, in their order; a wrapper replaces some of those of its base.

    Attributes:
        fit: the surrogate of some data, from these alone.
        fit_round: the surrogate of a round, which may go on from that of the round before.
        utility: the acquisition function.
        search: the points of greatest utility in the round's space.
        predictive: predictions of a surrogate, for points distributed like its data.
        forecast: predictions at the chosen points, which coverage and scores assess.
        notes: numbers for the log.
        lengthscales: of the surrogate's kernel in the unit cube: `d`, or one for all inputs.
        training_rows: rows of the history that the surrogate is fitted to.
        model_free_start: points to propose without a surrogate; None to go on with one.
        search_region: the part of the round's space that is searched.
        refine: maps the choice of the search to the final one.
        register_forecast: takes note of a proposal before anything is observed.
    """

    fit: Callable[[History], Surrogate]
    fit_round: Callable[[Round], Surrogate]
    utility: Callable[[Surrogate, Round], AcquisitionFunction]
    search: Callable[[Any, Surrogate, Round], Choice[Surrogate]]
    predictive: Callable[[Surrogate], Predictor]
    forecast: Callable[[Choice[Surrogate]], Predictor]
    notes: Callable[[Choice[Surrogate], Round], dict[str, float]]
    lengthscales: Callable[[Surrogate], Tensor]
    register_forecast: Callable[[Proposal], None]
    training_rows: Callable[[History], History] = complete_rows
    model_free_start: Callable[[History, int, Generator], Proposal | None] = no_start
    search_region: Callable[[Surrogate, Round], Space] = whole_space
    refine: Callable[[Choice[Surrogate], Round], Choice[Surrogate]] = unrefined

    def with_fit(self, fit: Callable[[History], Surrogate]) -> Self:
        """Return these steps with another surrogate, of a round's data alone."""
        return replace(self, fit=fit, fit_round=lambda round: fit(round.data))


class ComposedMethod(Method):
    """A method of steps; `ask` takes them one after another."""

    @property
    @abstractmethod
    def steps(self) -> Steps[Any]:
        """The steps of a round."""

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return `q` points of great utility."""
        steps = self.steps
        if (start := steps.model_free_start(history, q, generator)) is not None:
            return start
        round, began = self.start_round(history, q, generator), perf_counter()
        surrogate = steps.fit_round(round)
        fitted = perf_counter()
        round = replace(round, space=steps.search_region(surrogate, round))
        utility = steps.utility(surrogate, round)
        choice = steps.refine(steps.search(utility, surrogate, round), round)
        proposal = self.propose(choice, steps.forecast(choice), round)
        return replace(proposal, seconds={"fit": fitted - began, "acquire": perf_counter() - fitted})

    def start_round(self, history: History, q: int, generator: Generator, device: torch.device = CPU) -> Round:
        """Return a round of this method.

        Raises:
            PlumblineError: an outcome that nothing can be fitted to.
        """
        data = self.steps.training_rows(failures_as_worst(history, self.domain.outcomes))
        round = Round(history, data, self.domain.space, q, generator, device)
        self._refuse_unobserved(round)
        return round

    def propose(self, choice: Choice[Any], forecast: Predictor, round: Round) -> Proposal:
        """Return the proposal of a choice, and register its forecast."""
        surface = surface_of(choice.utility)
        proposal = Proposal(
            choice.X,
            forecast,
            surface if round.space is self.domain.space else confined(surface, round.space.bounds),
            notes=self.steps.notes(choice, round),
            observed=choice.observed,
            ends=choice.ends,
        )
        self.steps.register_forecast(proposal)
        return proposal

    def predictor(self, history: History) -> Predictor:
        """Return predictions from `history` alone, for points distributed like its own."""
        return self.steps.predictive(self.steps.fit(complete_rows(history)))

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


class SurrogateMethod(ComposedMethod, Generic[Surrogate]):
    """Fit a surrogate, build an acquisition function, search for its maximum; a subclass says how each is done."""

    provides = frozenset({"steps", "new points"})

    @property
    def steps(self) -> Steps[Surrogate]:
        """The steps, which are this method's own."""
        return Steps(
            fit=self.fit,
            fit_round=lambda round: self.fit(round.data),
            utility=self.utility,
            search=self.search,
            predictive=self.predictive,
            forecast=self.forecast,
            notes=self.notes,
            lengthscales=self.lengthscales,
            register_forecast=self.register_forecast,
            training_rows=self.training_rows,
        )

    @abstractmethod
    def fit(self, data: History) -> Surrogate:
        """Return the surrogate of the observations."""

    @abstractmethod
    def utility(self, surrogate: Surrogate, round: Round) -> AcquisitionFunction:
        """Return the acquisition function of a batch of points."""

    def search(self, utility: AcquisitionFunction, surrogate: Surrogate, round: Round) -> Choice[Surrogate]:
        """Return the points of greatest utility in the round's space; `options.search` says how hard to look."""
        ends = round.settled.ends(utility, self.multi_start(surrogate, round))
        return Choice(ends[0], utility, surrogate, ends=ends)

    def start_search(self, utility: AcquisitionFunction, surrogate: Surrogate, round: Round) -> Climbs | None:
        """Return the climbs that `search` begins with in a box; None elsewhere, steps of inputs included."""
        space = round.settled
        if type(space) is not Box:
            return None
        return space.climbs(utility, self.multi_start(surrogate, round))

    def multi_start(self, surrogate: Surrogate, round: Round) -> MultiStart:
        """Return the search of the round."""
        return MultiStart(round.q, self.options.search, round.seed, self.neighbourhood(surrogate, round))

    def neighbourhood(self, surrogate: Surrogate, round: Round) -> Neighbourhood | None:
        """Return where the search looks besides everywhere; None for no such place."""
        return None

    @abstractmethod
    def predictive(self, surrogate: Surrogate) -> Predictor:
        """Return the surrogate's predictions, for points distributed like its data."""

    def forecast(self, choice: Choice[Surrogate]) -> Predictor:
        """Return the predictions at the chosen points, which coverage and scores assess."""
        return self.predictive(choice.surrogate)

    def notes(self, choice: Choice[Surrogate], round: Round) -> dict[str, float]:
        """Return numbers for the log."""
        return choice.notes

    def lengthscales(self, surrogate: Surrogate) -> Tensor:
        """Return the lengthscales of the surrogate's kernel in the unit cube: `d`, or one for all inputs.

        Raises:
            NotImplementedError: the method does not provide `lengthscales`.
        """
        raise NotImplementedError

    def training_rows(self, history: History) -> History:
        """Return the rows that the surrogate is fitted to: those with all outcomes, as failed evaluations have here."""
        return complete_rows(history)

    def register_forecast(self, proposal: Proposal) -> None:
        """Take note of a proposal, before anything is observed."""


def surface_of(utility: AcquisitionFunction) -> Surface:
    """Return the utility of `n x d` points, each on its own, as a function to `n` values without gradients."""

    def surface(points: Tensor) -> Tensor:
        with torch.no_grad():
            return utility(points.unsqueeze(-2))

    return surface


def confined(surface: Surface, region: Tensor) -> Surface:
    """Return a surface that is minus infinity outside of `region` (`2 x d`): nothing else was looked at."""

    def within(points: Tensor) -> Tensor:
        return surface(points).where(inside(points, region), -torch.inf)

    return within
