"""Lockstep of several seeds of one method, which take some steps jointly."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Generic, TypeVar, cast

from plumbline.methods.ask import AskRequest
from plumbline.methods.base import Proposal
from plumbline.methods.composed import Choice, ComposedMethod, Round

Result = TypeVar("Result")


@dataclass(frozen=True)
class Turn:
    """A method's turn in a joint step.

    Attributes:
        method: owner of the step.
        arguments: of the step.
        isolated: makes a block whose random streams and warnings are the request's own.
    """

    method: Any
    arguments: tuple[Any, ...]
    isolated: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def call(self) -> tuple[Any, ...]:
        """The method and the arguments."""
        return (self.method, *self.arguments)


@dataclass(frozen=True)
class JointStep(Generic[Result]):
    """A step of a method that several methods of its class can take jointly.

    Attributes:
        method: owner of the step.
        jointly: maps turns to their results; None for a turn that is to be taken alone, as where there is a warning
            that belongs to one request.
        alone: the step of the one method; None where that is the joint step of a single turn.
    """

    method: Any
    jointly: Callable[[Sequence[Turn]], Sequence[Result | None]]
    alone: Callable[..., Result] | None = None

    def __call__(self, *arguments: Any) -> Result:
        """Return the result of the one method."""
        if self.alone is not None:
            return self.alone(*arguments)
        return cast(Result, self.jointly([Turn(self.method, arguments)])[0])


@dataclass
class AskState:
    """One request on its way through a round.

    Attributes:
        request: answered in its own isolation, but for steps that are taken jointly.
        proposal: the answer, once there is one.
        seconds: wall time of the parts; of a joint step, an equal share.
    """

    request: AskRequest
    proposal: Proposal | None = None
    seconds: dict[str, float] = field(default_factory=lambda: {"fit": 0.0, "acquire": 0.0})

    def __post_init__(self) -> None:
        self.method = cast(ComposedMethod, self.request.method)

    def start(self) -> None:
        """Propose points without a surrogate, or start a round with one."""
        request = self.request
        self.proposal = self.method.steps.model_free_start(request.history, request.q, request.stream)
        if self.proposal is None:
            self.round: Round = self.method.start_round(request.history, request.q, request.stream, request.device)

    def start_search(self, surrogate: Any) -> tuple[Any, ...]:
        """Return the step of the search under a surrogate, with its arguments."""
        steps = self.method.steps
        self.round = replace(self.round, space=steps.search_region(surrogate, self.round))
        return steps.search, steps.utility(surrogate, self.round), surrogate, self.round

    def propose(self, choice: Choice[Any]) -> None:
        """Make a proposal of a choice."""
        self.proposal = self.method.propose(choice, self.method.steps.forecast(choice), self.round)


class LockstepMethod(ComposedMethod):
    """A method of steps whose seeds are asked in lockstep where its `lockstep_size` is more than 1."""

    @classmethod
    def ask_many(cls, requests: Sequence[AskRequest]) -> list[Proposal | Exception]:
        """Return an answer to each request; an error of one is raised for all."""
        if all(request.method.lockstep_size == 1 for request in requests):
            return super().ask_many(requests)
        return list(ask_in_lockstep(requests))


def ask_in_lockstep(requests: Sequence[AskRequest]) -> list[Proposal]:
    """Return the answers to requests, made step by step in the order of `ComposedMethod.ask`."""
    states = [AskState(request) for request in requests]
    for state in states:
        with state.request.isolated():
            state.start()
    going_on = [state for state in states if state.proposal is None]
    if going_on:
        fits = [(state.method.steps.fit_round, state.round) for state in going_on]
        searches = []
        for state, surrogate in zip(going_on, taken(going_on, fits, "fit"), strict=True):
            with timed([state], "acquire"), state.request.isolated():
                searches.append(state.start_search(surrogate))
        choices = taken(going_on, searches, "acquire")
        refinements = [
            (state.method.steps.refine, choice, state.round) for state, choice in zip(going_on, choices, strict=True)
        ]
        for state, choice in zip(going_on, taken(going_on, refinements, "acquire"), strict=True):
            with timed([state], "acquire"), state.request.isolated():
                state.propose(choice)
    for state in going_on:
        state.proposal = replace(cast(Proposal, state.proposal), seconds=state.seconds)
    return [cast(Proposal, state.proposal) for state in states]


def taken(states: Sequence[AskState], steps: Sequence[tuple[Any, ...]], part: str) -> list[Any]:
    """Return the results of one step of each state: a step, with its arguments.

    Joint steps are taken outside of any request's isolation but for what they isolate themselves, all others inside of
    their own.
    """
    results: Sequence[Any] = [None] * len(steps)
    if all(isinstance(step, JointStep) for step, *_ in steps):
        turns = [
            Turn(step.method, tuple(arguments), state.request.isolated)
            for state, (step, *arguments) in zip(states, steps, strict=True)
        ]
        with timed(states, part):
            results = steps[0][0].jointly(turns)
    return [
        _taken_alone(state, step, part) if result is None else result
        for state, step, result in zip(states, steps, results, strict=True)
    ]


def _taken_alone(state: AskState, step: tuple[Any, ...], part: str) -> Any:
    function, *arguments = step
    with timed([state], part), state.request.isolated():
        return function(*arguments)


@contextmanager
def timed(states: Sequence[AskState], part: str) -> Iterator[None]:
    """Add the wall time of the block to a part of the states' seconds, in equal shares."""
    started = perf_counter()
    yield
    for state in states:
        state.seconds[part] += (perf_counter() - started) / len(states)
