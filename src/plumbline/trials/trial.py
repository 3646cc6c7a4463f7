"""One method on one task with one seed: its requests, evaluations and diagnostics."""

import copy
import zlib
from contextlib import AbstractContextManager
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from plumbline.core import seeding
from plumbline.core.alpha import alpha_at
from plumbline.core.culprits import plugin_code
from plumbline.core.errors import PlumblineError, shown
from plumbline.core.history import History
from plumbline.core.streams import seed_streams
from plumbline.designs.base import initial_design
from plumbline.methods.ask import CPU, AskRequest
from plumbline.methods.base import Domain, Method, Proposal, build_method, checked, refuse_lost_state
from plumbline.problems.base import Context, EvaluationContext, SharedCache
from plumbline.problems.build import build_problem
from plumbline.problems.evaluation import (
    holdout_of,
    metadata_of,
    notes_of,
    observe,
    observe_holdout,
    observed,
    optima_of,
    values,
)
from plumbline.spaces.base import checked_points
from plumbline.spaces.stepped import Stepped, on_steps
from plumbline.store.spec import TrialSpec
from plumbline.trials import diagnostics
from plumbline.trials.log import Log, Step

AT_ONCE = 1_000
"""Number of points of an initial design that are evaluated between two checkpoints."""


def _seed(stream: torch.Generator) -> None:
    """Seed the global streams like a stream of the trial, for code that draws from them."""
    seed_streams(stream.initial_seed() % 2**31)


def _digest(rows: Tensor, before: int = 0) -> int:
    """Return a checksum of rows (`n x k`) that go on from those with the checksum `before`."""
    return zlib.crc32(rows.numpy().data, before)


LISTED_POINTS = 400
"""Letters of the points of several evaluations that an error lists."""


def _evaluations(first: int, X: Tensor) -> str:
    """Return the evaluations from `first` on, at `X` (`n x d`), in the words of errors."""
    if len(X) == 1:
        return f"evaluation {first}, x = {X[0].tolist()}"
    some = X[: LISTED_POINTS // (3 * X.shape[1]) + 1]  # a number has three letters or more
    return f"one of evaluations {first} to {first + len(X) - 1}, x = {shown(some.tolist(), LISTED_POINTS)}"


class Trial:
    """One method on one task with one seed.

    A round is a request and an answer, so that a method can answer the requests of several trials together. Neither
    changes the log: `begin` and `answer` return the steps to append.

    Args:
        spec: spec of the trial.
        data: folder of built features.
        log: log of the earlier rounds.
        state: state of the method after these.
        device: device for the method's computations.
        shared: cache that the problem shares with those of other trials.
        together: greatest number of seeds that the method answers together.
    """

    def __init__(
        self,
        spec: TrialSpec,
        data: Path,
        log: Log | None = None,
        state: dict[str, Any] | None = None,
        device: torch.device = CPU,
        shared: SharedCache | None = None,
        together: int = 1,
    ) -> None:
        self.spec = spec
        self.together = together
        self.device = device
        self.log = Log() if log is None else log
        self.identity = spec.problem.stream_name()
        context = Context(data=data, generator=self._stream("problem"), shared=shared or SharedCache())
        _seed(context.generator)
        with self._problem_code():
            self.problem = build_problem(spec.problem.name, spec.problem.options, context)
            self.metadata = metadata_of(self.problem)
            size = spec.diagnostics.holdout
            self.holdout = holdout_of(self.problem, size, self._stream("holdout")) if size else None
        if self.problem.space.sequential and spec.budget.q > 1:
            raise PlumblineError(
                f"problem {spec.problem.name!r}: a round has one query, not {spec.budget.q}: set q to 1"
            )
        if spec.diagnostics.snapshots and self.problem.space.dim != 1:
            raise PlumblineError(
                f"diagnostics.snapshots: they are of problems of one input; {spec.problem.name!r} has "
                f"{self.problem.space.dim}"
            )
        self.domain = Domain(self.problem.space, self.problem.outcomes, self.problem.shift, self.problem.noise_free)
        self.method = self._method(state or {})
        self._before: dict[str, Any] = {}
        self._kinds: dict[str, type] | None = None
        self._bounds = self.domain.bounds.clone()
        self._lent, self._digests, self._versions = 0, (0, 0), (0, 0)

    def _stream(self, name: seeding.Stream, index: int = 0) -> torch.Generator:
        return seeding.generator(self.identity, self.spec.seed, name, index)

    def _noise(self, index: int) -> torch.Generator:
        """Return the random stream of an evaluation, equal in all trials if the problem shares its randomness."""
        seed = 0 if self.problem.shared_chance else self.spec.seed
        return seeding.generator(self.identity, seed, "noise", index)

    def _method(self, state: dict[str, Any]) -> Method:
        with self._method_code():
            method = build_method(self.spec.method.name, self.spec.method.options, self.domain)
            method.load_state_dict(state)
        method.lockstep_size = max(method.lockstep_size, self.together)
        return method

    def _problem_code(self, evaluated: Tensor | None = None) -> AbstractContextManager[None]:
        """Return the boundary around code of the problem; errors name the next evaluations, if at these points."""
        where = "" if evaluated is None else f" at {_evaluations(len(self.log), evaluated)}"
        return plugin_code(f"problem {self.spec.problem.name!r}{where}")

    def _method_code(self) -> AbstractContextManager[None]:
        return plugin_code(f"method {self.spec.method.name!r}")

    def prepare(self, context: EvaluationContext) -> None:
        """Let the problem prepare its evaluations."""
        if self.problem.prepare:
            with self._problem_code():
                self.problem.prepare(context)

    def state(self) -> dict[str, Any]:
        """Return the state of the method."""
        with self._method_code():
            state = self.method.state_dict()
        kinds = {key: type(value) for key, value in state.items()} if isinstance(state, dict) else None
        if kinds is None or kinds != self._kinds:  # not at each save: it takes as long as a cheap round
            refuse_lost_state(self.spec.method.name, state)
            self._kinds = kinds
        return state

    @property
    def beginning(self) -> bool:
        """Whether points of the initial design are still to be evaluated."""
        return len(self.log) < self.spec.budget.initial.size

    @property
    def done(self) -> bool:
        """Whether the budget is spent."""
        return not self.beginning and self.log.iteration >= self.spec.budget.rounds

    def begin(self) -> Step:
        """Evaluate the next points of the initial design.

        Raises:
            PlumblineError: the design does not suit the problem or returns other points than were asked for, or the
                problem returns outcomes that it cannot have or changes the points that it was given.
        """
        initial, first = self.spec.budget.initial, len(self.log)
        whose, stream = f"initial design {initial.design!r}", self._stream("design")
        _seed(stream)
        with plugin_code(whose):
            X = initial_design(initial, self.problem, stream)
        if isinstance(self.problem.space, Stepped):
            X = on_steps(X, self.problem.bounds, self.problem.space.steps)
        X = checked_points(whose, X, self.problem.space)
        if len(X) != initial.size:
            raise PlumblineError(f"{whose} returned {len(X)} points, {initial.size} were asked for")
        X = X[first : first + AT_ONCE]
        started = perf_counter()
        Y, F = self._evaluate(X, None)
        return Step(0, X, Y, F, seconds={"evaluate": perf_counter() - started})

    def request(self) -> AskRequest:
        """Return the request of the next round."""
        if self.method.lockstep_size > 1:
            self._before = copy.deepcopy(self.state())
        self._lend()
        history = History(self.log.X, self.log.Y, self.spec.budget.initial.size)
        return AskRequest(
            self.method, history, self.spec.budget.q, self._stream("method", self.log.iteration + 1), self.device
        )

    def same_request(self) -> AskRequest:
        """Return the last request again, with the method restored: a failed attempt may have changed its state, and
        has drawn from the stream."""
        self.method = self._method(self._before)
        return self.request()

    def _lend(self) -> None:
        """Note what the history is before the method gets it."""
        first, self._lent = self._lent, len(self.log)
        X, Y = self.log.X, self.log.Y
        self._versions = X._version, Y._version
        # Only the new rows: digests of all are compared once, at the end.
        x, y = self._digests
        self._digests = _digest(X[first:], x), _digest(Y[first:], y)

    def refuse_changed_history(self, thoroughly: bool = False) -> None:
        """Raise PlumblineError if the method wrote into the history or the bounds that it was given.

        Args:
            thoroughly: whether to compare all numbers, since torch does not count writes of NumPy into its memory;
                else the history must not have grown since the request.
        """
        X, Y = self.log.X[: self._lent], self.log.Y[: self._lent]
        numbers = not thoroughly or (_digest(X), _digest(Y)) == self._digests
        writes = thoroughly or (X._version, Y._version) == self._versions
        if not (numbers and writes) or not torch.equal(self.domain.bounds, self._bounds):
            raise PlumblineError(
                f"method {self.spec.method.name!r} wrote into the history or the bounds that it was given: "
                "let it work on a copy (`history.X.clone()`)"
            )

    def answer(self, request: AskRequest, proposal: Proposal) -> Step:
        """Evaluate the proposal, tell the method, and assess its forecasts.

        Raises:
            PlumblineError: the proposal is not what was asked for, the method changed what it was given, or the problem
                returns outcomes that it cannot have or changes the points that it was given.
        """
        self.refuse_changed_history()
        proposal = checked(self.spec.method.name, proposal, request, self.domain)
        wanted, iteration, history = self.spec.diagnostics, self.log.iteration + 1, request.history
        alphas = [alpha_at(alpha, len(history)) for alpha in wanted.alphas]
        snapshot = None
        if proposal.predict:
            _seed(request.stream)
        with self._method_code():
            forecast = proposal.predict(proposal.X) if proposal.predict else None
            held = self._held_coverage(iteration, proposal, history, alphas)
            if wanted.snapshots is not None and iteration in wanted.snapshots.rounds:
                snapshot = diagnostics.picture(
                    proposal,
                    self._truth,
                    self.domain.bounds,
                    wanted.snapshots.points,
                    alphas[0],
                )
        started = perf_counter()
        Y, F = self._evaluate(proposal.X, proposal.observed)
        seconds = {**proposal.seconds, "evaluate": perf_counter() - started}
        notes = {**proposal.notes, **self._problem_notes(proposal.X, F)}
        with self._method_code():
            self.method.tell(proposal.X.clone(), Y.clone())
            columns = diagnostics.assess(forecast, Y, F, alphas) if forecast else {}
            at_ends = self._end_coverage(iteration, proposal, history, alphas)
            of_round = {"holdout_coverage": held, "end_coverage": at_ends, **self._widths(proposal, history, alphas)}
            columns |= {name: values.expand(len(Y), -1) for name, values in of_round.items()}
            if wanted.recommend and iteration == self.spec.budget.rounds:
                notes |= self._recommendation(request, proposal.X, Y)
        self.refuse_changed_history()
        return Step(iteration, proposal.X, Y, F, columns, request.events, notes, seconds, snapshot)

    def _problem_notes(self, X: Tensor, F: Tensor) -> dict[str, float]:
        """Return the problem's notes on the evaluations of a round."""
        if self.problem.notes is None:
            return {}
        with self._problem_code(X):
            return notes_of(self.problem, X.clone(), F.clone())

    def _recommendation(self, request: AskRequest, X: Tensor, Y: Tensor) -> dict[str, float]:
        """Return, as a note, the noise-free value at the method's recommendation after the observations `X`, `Y`."""
        if self.domain.takes != "one objective":
            return {}
        before = request.history
        history = History(torch.cat([before.X, X]), torch.cat([before.Y, Y]), before.initial)
        with request.isolated():
            best = self.method.recommend(history, self._stream("recommendation"))
        return {"recommended_f": float(self._truth(best))}

    def _truth(self, X: Tensor) -> Tensor:
        """Return the noise-free first outcome at `X` (`n x d`): `n`."""
        with self._problem_code():
            return values(self.problem, X)[:, 0]

    def _evaluate(self, X: Tensor, requested: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return noisy and noise-free values at `X`; the noise does not depend on the method."""
        first, given = len(self.log), X.clone()
        streams = [self._noise(first + i) for i in range(len(X))]
        _seed(streams[0])  # the method may have drawn from the global streams, and other trials may
        with self._problem_code(X):
            Y, F = observe(self.problem, given, streams)
        if not torch.equal(given, X):
            raise PlumblineError(
                f"problem {self.spec.problem.name!r} wrote into the points that it was given: "
                "let it work on a copy (`X.clone()`)"
            )
        requested = torch.ones_like(Y, dtype=torch.bool) if requested is None else requested
        return observed(self.problem, self.spec.problem.name, X, Y, F, requested, first)

    def _held_coverage(self, iteration: int, proposal: Proposal, history: History, alphas: list[float]) -> Tensor:
        """Return the share of held-out observations in the model's sets, one a level, or an empty tensor."""
        if self.holdout is not None and proposal.predict is not None:
            X, Y = self.holdout
            return diagnostics.coverage(proposal.predict(X), Y, alphas)
        share = self.spec.diagnostics.holdout_fraction
        return diagnostics.coverage_of_a_share(
            self.method, history, share, lambda: self._stream("holdout", iteration), alphas
        )

    def _end_coverage(self, iteration: int, proposal: Proposal, history: History, alphas: list[float]) -> Tensor:
        """Return the coverage at the ends of the search's climbs, one a level, or an empty tensor.

        The model has all data and no shift; the observations have separate noise, as in CBO's code.
        """
        if not self.spec.diagnostics.ends or proposal.ends is None:
            return torch.empty(0)
        predict = self.method.predictor(history)
        if predict is None:
            return torch.empty(0)
        X = proposal.ends.flatten(end_dim=1)
        stream = self._stream("ends", iteration)
        with self._problem_code():
            Y = observe_holdout(self.problem, X, stream)
        return diagnostics.coverage(predict(X), Y, alphas)

    def _widths(self, proposal: Proposal, history: History, alphas: list[float]) -> dict[str, Tensor]:
        """Return the widths of the model's sets at the optima and over the holdout that the diagnostics require."""
        columns: dict[str, Tensor] = {}
        wanted = self.spec.diagnostics
        if proposal.predict is None or self.holdout is None:
            return columns
        X, _ = self.holdout
        if wanted.widths:
            places = {"holdout_width": X, "optimum_width": optima_of(self.problem)}
            columns |= {name: diagnostics.mean_width(proposal.predict, at, alphas) for name, at in places.items()}
        if wanted.reach:
            near = diagnostics.within(wanted.reach, X, history.X, self.domain.bounds)
            widths = diagnostics.relative_widths(proposal.predict, X, alphas)
            parts = {"near_width": near, "far_width": ~near}
            columns |= {name: diagnostics.middle(widths[:, part]) for name, part in parts.items()}
        return columns
