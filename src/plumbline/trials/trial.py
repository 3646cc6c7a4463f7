"""One method on one task with one seed: what it asks in each round, and what it makes of the answer."""

import copy
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from plumbline.core import seeding
from plumbline.core.alpha import alpha_at
from plumbline.core.history import History
from plumbline.designs.base import initial_design
from plumbline.methods.ask import CPU, AskRequest
from plumbline.methods.base import Domain, Method, Proposal, build_method
from plumbline.problems.base import Context, SharedCache
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
from plumbline.store.spec import TrialSpec
from plumbline.trials import diagnostics
from plumbline.trials.log import Log, Step

AT_ONCE = 1_000
"""Points of an initial design that are evaluated between two checkpoints."""


class Trial:
    """One method on one task with one seed.

    A round is a question and an answer, so that the questions of several trials can be put to their method together.
    Neither changes the log: `begin` and `answer` return what is to be appended.

    Args:
        spec: what to run.
        data: the folder of built features.
        log: what was done already.
        state: of the method, after that.
        device: where the method may compute.
        shelf: what its problem shares with those of other trials.
    """

    def __init__(
        self,
        spec: TrialSpec,
        data: Path,
        log: Log | None = None,
        state: dict[str, Any] | None = None,
        device: torch.device = CPU,
        shelf: SharedCache | None = None,
    ) -> None:
        self.spec = spec
        self.device = device
        self.log = Log() if log is None else log
        self.identity = seeding.identity(spec.problem.name, spec.problem.options)
        context = Context(data=data, generator=self._stream("problem"), shelf=shelf or SharedCache())
        self.problem = build_problem(spec.problem.name, spec.problem.options, context)
        self.facts = metadata_of(self.problem)
        self.domain = Domain(self.problem.space, self.problem.outcomes, self.problem.shift)
        size = spec.diagnostics.holdout
        self.holdout = holdout_of(self.problem, size, self._stream("holdout")) if size else None
        self.method = self._method(state or {})
        self._before: dict[str, Any] = {}

    def _stream(self, name: seeding.Stream, index: int = 0) -> torch.Generator:
        return seeding.generator(self.identity, self.spec.seed, name, index)

    def _noise(self, index: int) -> torch.Generator:
        """Return the stream of an evaluation's chance: one for all trials where the problem asks for that."""
        seed = 0 if self.problem.shared_chance else self.spec.seed
        return seeding.generator(self.identity, seed, "noise", index)

    def _method(self, state: dict[str, Any]) -> Method:
        method = build_method(self.spec.method.name, self.spec.method.options, self.domain)
        method.load_state_dict(state)
        return method

    @property
    def beginning(self) -> bool:
        """Whether points of the initial design are still to be evaluated."""
        return len(self.log) < self.spec.budget.initial.size

    @property
    def done(self) -> bool:
        """Whether the budget is spent."""
        return not self.beginning and self.log.iteration >= self.spec.budget.rounds

    def begin(self) -> Step:
        """Evaluate the next points of the initial design."""
        initial, first = self.spec.budget.initial, len(self.log)
        X = initial_design(initial, self.problem, self._stream("design"))
        X = X[first : first + AT_ONCE]
        started = perf_counter()
        Y, F = self._evaluate(X, None)
        return Step(0, X, Y, F, seconds={"evaluate": perf_counter() - started})

    def question(self) -> AskRequest:
        """Return what the method is to be asked in the next round."""
        if self.method.lockstep_size > 1:
            self._before = copy.deepcopy(self.method.state_dict())
        history = History(self.log.X, self.log.Y, self.spec.budget.initial.size)
        return AskRequest(
            self.method, history, self.spec.budget.q, self._stream("method", self.log.iteration + 1), self.device
        )

    def same_request(self) -> AskRequest:
        """Return the last question anew, to a method that has not heard it: an attempt to answer it may leave traces
        in the method and has drawn from the stream."""
        self.method = self._method(self._before)
        return self.question()

    def answer(self, question: AskRequest, proposal: Proposal) -> Step:
        """Evaluate what was proposed, tell the method, and judge what it said before."""
        wanted, iteration, history = self.spec.diagnostics, self.log.iteration + 1, question.history
        forecast = proposal.predict(proposal.X) if proposal.predict else None
        alphas = [alpha_at(alpha, len(history)) for alpha in wanted.alphas]
        held = self._held_coverage(iteration, proposal, history, alphas)
        snapshot = None
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
        self.method.tell(proposal.X, Y)
        columns = diagnostics.judge(forecast, Y, F, alphas) if forecast else {}
        at_ends = self._end_coverage(iteration, proposal, history, alphas)
        of_round = {"holdout_coverage": held, "end_coverage": at_ends, **self._widths(proposal, history, alphas)}
        columns |= {name: values.expand(len(Y), -1) for name, values in of_round.items()}
        notes = {**proposal.notes, **notes_of(self.problem, proposal.X, F)}
        if wanted.recommend and iteration == self.spec.budget.rounds:
            notes |= self._recommendation(question, proposal.X, Y)
        return Step(iteration, proposal.X, Y, F, columns, question.events, notes, seconds, snapshot)

    def _recommendation(self, question: AskRequest, X: Tensor, Y: Tensor) -> dict[str, float]:
        """Return, as a note, the worth of what the method holds to be the optimum after the answer `X`, `Y`."""
        if self.domain.takes != "one objective":
            return {}
        before = question.history
        seen = History(torch.cat([before.X, X]), torch.cat([before.Y, Y]), before.initial)
        with question.isolated():
            best = self.method.recommend(seen, self._stream("recommendation"))
        return {"recommended_f": float(self._truth(best))}

    def _truth(self, X: Tensor) -> Tensor:
        """Return the noise-free first outcome at `X` (`n x d`): `n`."""
        return values(self.problem, X)[:, 0]

    def _evaluate(self, X: Tensor, wanted: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return noisy and noise-free values at `X`; the noise is that of these evaluations under any method."""
        first = len(self.log)
        Y, F = observe(self.problem, X, [self._noise(first + i) for i in range(len(X))])
        asked = torch.ones_like(Y, dtype=torch.bool) if wanted is None else wanted
        return observed(self.problem, self.spec.problem.name, X, Y, F, asked, first)

    def _held_coverage(self, iteration: int, proposal: Proposal, history: History, alphas: list[float]) -> Tensor:
        """Return the share of held-out observations in the model's sets, one a level, or none of them."""
        if self.holdout is not None and proposal.predict is not None:
            X, Y = self.holdout
            return diagnostics.coverage(proposal.predict(X), Y, alphas)
        share = self.spec.diagnostics.holdout_fraction
        return diagnostics.coverage_of_a_share(
            self.method, history, share, lambda: self._stream("holdout", iteration), alphas
        )

    def _end_coverage(self, iteration: int, proposal: Proposal, history: History, alphas: list[float]) -> Tensor:
        """Return the share of observations in the model's sets where the search's climbs ended, one a level, or none.

        Of the model of all data without a shift, and with noise of its own (the code of CBO).
        """
        if not self.spec.diagnostics.ends or proposal.ends is None:
            return torch.empty(0)
        predict = self.method.predictor(history)
        if predict is None:
            return torch.empty(0)
        X = proposal.ends.flatten(end_dim=1)
        return diagnostics.coverage(
            predict(X), observe_holdout(self.problem, X, self._stream("ends", iteration)), alphas
        )

    def _widths(self, proposal: Proposal, history: History, alphas: list[float]) -> dict[str, Tensor]:
        """Return how wide the model's sets are at the optima and over the holdout, as far as that is asked for."""
        found: dict[str, Tensor] = {}
        wanted = self.spec.diagnostics
        if proposal.predict is None or self.holdout is None:
            return found
        X, _ = self.holdout
        if wanted.widths:
            places = {"holdout_width": X, "optimum_width": optima_of(self.problem)}
            found |= {name: diagnostics.mean_width(proposal.predict, at, alphas) for name, at in places.items()}
        if wanted.reach:
            near = diagnostics.within(wanted.reach, X, history.X, self.domain.bounds)
            widths = diagnostics.relative_widths(proposal.predict, X, alphas)
            parts = {"near_width": near, "far_width": ~near}
            found |= {name: diagnostics.middle(widths[:, part]) for name, part in parts.items()}
        return found
