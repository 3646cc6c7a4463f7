"""Lockstep of several seeds of one method, which take some steps jointly."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Generic, TypeVar, cast

from plumbline.methods.ask import AskRequest
from plumbline.methods.base import Proposal
from plumbline.methods.composed import Choice, ComposedMethod, Round

Result = TypeVar("Result")


@dataclass(frozen=True)
class JointStep(Generic[Result]):
    """A step of a method that several methods of its class can take jointly.

    Attributes:
        method: owner of the step.
        jointly: maps methods, each with the arguments of its step, to their results.
    """

    method: Any
    jointly: Callable[[Sequence[Any]], list[Result]]

    def __call__(self, *arguments: Any) -> Result:
        """Return the result of the one method."""
        return self.jointly([(self.method, *arguments)])[0]


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

    def choose(self, surrogate: Any) -> None:
        """Maximise the acquisition function under a surrogate."""
        steps = self.method.steps
        self.round = replace(self.round, space=steps.search_region(surrogate, self.round))
        self.choice: Choice[Any] = steps.search(steps.utility(surrogate, self.round), surrogate, self.round)

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
        for state, surrogate in zip(going_on, taken(going_on, fits, "fit"), strict=True):
            with timed([state], "acquire"), state.request.isolated():
                state.choose(surrogate)
        refinements = [(state.method.steps.refine, state.choice, state.round) for state in going_on]
        for state, choice in zip(going_on, taken(going_on, refinements, "acquire"), strict=True):
            with timed([state], "acquire"), state.request.isolated():
                state.propose(choice)
    for state in going_on:
        state.proposal = replace(cast(Proposal, state.proposal), seconds=state.seconds)
    return [cast(Proposal, state.proposal) for state in states]


def taken(states: Sequence[AskState], steps: Sequence[tuple[Any, ...]], part: str) -> list[Any]:
    """Return the results of one step of each state: a step, with its arguments.

    Joint steps are taken outside of any request's isolation, all others inside of their own.
    """
    with timed(states, part):
        if all(isinstance(step, JointStep) for step, *_ in steps):
            return steps[0][0].jointly([(step.method, *arguments) for step, *arguments in steps])
        results = []
        for state, (step, *arguments) in zip(states, steps, strict=True):
            with state.request.isolated():
                results.append(step(*arguments))
        return results


@contextmanager
def timed(states: Sequence[AskState], part: str) -> Iterator[None]:
    """Add the wall time of the block to a part of the states' seconds, in equal shares."""
    started = perf_counter()
    yield
    for state in states:
        state.seconds[part] += (perf_counter() - started) / len(states)
