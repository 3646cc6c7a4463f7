"""Observations that are not whole: evaluations that failed, and outcomes that were not asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from botorch.test_functions import Branin
from botorch.test_functions.synthetic import ConstrainedGramacy
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.methods.base import Method, Proposal
from plumbline.metrics.frames import entries, frame_of
from plumbline.metrics.registry import metric
from plumbline.problems.build import problem_of
from plumbline.store.spec import TrialSpec
from plumbline.trials import run_trial

Make = Callable[..., TrialSpec]
Register = Callable[..., None]


class HalfBroken(Branin):
    """Branin, which cannot be evaluated in the right half of its box."""

    def _evaluate_true(self, X: Tensor) -> Tensor:
        return super()._evaluate_true(X).where(X[..., 0] < 2.5, torch.nan)


def rows_of(spec: TrialSpec, folder: Path) -> Any:
    made = run_trial(spec, folder, folder)
    assert not made.failed, made.error_path.read_text()
    return frame_of(made.table(spec, points=True))


@pytest.mark.parametrize("method", ["random", "ei", "locbo", "trust-region"])
def test_a_failed_evaluation_is_an_observation_where_the_problem_says_so(
    method: str, cheap_spec: Make, register: Register, tmp_path: Path
) -> None:
    def build(options: Any, context: Any) -> Any:
        return problem_of(HalfBroken(negate=True), may_fail=True)

    register("problem", "half-broken", build, "plumbline.problems.synthetic")
    quick = {"search": {"restarts": 1, "raw_samples": 8, "maxiter": 5}}
    options = {"random": {}, "trust-region": {"base": {"name": "ucb", "options": quick}}}.get(method, quick)
    rows = rows_of(cheap_spec("half-broken", method, options=options, size=8, rounds=8), tmp_path)
    failed = rows["y"].isna()
    assert 0 < failed.sum() < len(rows)
    best = metric(rows, "best_y")
    assert np.isfinite(best.iloc[-1])
    assert best.iloc[-1] == rows["y"].max()
    # What was forecast is judged by nothing where nothing came of it.
    assert rows.loc[failed, "pit"].isna().all()
    if method == "ei":
        asked = rows["iteration"] > 0
        assert rows.loc[asked & ~failed, "pit"].notna().all()


@pytest.mark.parametrize("method", ["random", "ei", "locbo"])
@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
def test_failures_are_nan_whatever_they_return(
    method: str, value: float, cheap_spec: Make, register: Register, tmp_path: Path
) -> None:
    def function() -> Branin:
        broken = HalfBroken(negate=True)
        broken._evaluate_true = lambda X: Branin._evaluate_true(broken, X).where(X[..., 0] < 2.5, value)
        return broken

    register("problem", "odd", lambda *_: problem_of(function(), may_fail=True), "plumbline.problems.synthetic")
    rows = rows_of(cheap_spec("odd", method, size=8, rounds=5, q=2), tmp_path)
    failed = rows["y"].isna()
    assert (rows["f"].isna() == failed).all()
    for name in ("query_coverage", "f_coverage"):
        assert metric(rows, name).dropna().between(0, 1).all()
    if method == "ei":
        judged = entries(rows["f_covered"])[:, 0]
        assert np.isnan(judged[failed & (rows["iteration"] > 0)]).all()


class TooMany(Method):
    """Asks for more outcomes than there are."""

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        return Proposal(self.domain.space.draw(q, history, generator), observed=torch.ones(q, 3, dtype=torch.bool))


def test_outcomes_that_are_not_there_cannot_be_asked_for(cheap_spec: Make, register: Register, tmp_path: Path) -> None:
    register("method", "too-many", TooMany, "plumbline.methods.baselines")
    folder = run_trial(cheap_spec("branin", "too-many", options={}), tmp_path, tmp_path)
    assert folder.failed
    assert "a proposal asks for outcomes (1, 3); there are (1, 1)" in folder.error_path.read_text()


def test_without_leave_to_fail_it_is_an_error(cheap_spec: Make, register: Register, tmp_path: Path) -> None:
    register("problem", "broken", lambda *_: problem_of(HalfBroken(negate=True)), "plumbline.problems.synthetic")
    spec = cheap_spec("broken", "random", size=8)
    folder = run_trial(spec, tmp_path, tmp_path)
    assert folder.failed
    assert "or set its `may_fail`" in folder.error_path.read_text()


class OneAtATime(Method):
    """Asks for one outcome a round, in turn."""

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        outcomes = len(self.domain.outcomes)
        observed = torch.zeros(q, outcomes, dtype=torch.bool)
        observed[:, len(history) % outcomes] = True
        return Proposal(self.domain.space.draw(q, history, generator), observed=observed)


def test_outcomes_can_be_asked_for_one_at_a_time(cheap_spec: Make, register: Register, tmp_path: Path) -> None:
    register("problem", "gramacy", lambda *_: problem_of(ConstrainedGramacy(negate=True)), "plumbline.problems.build")
    register("method", "one-at-a-time", OneAtATime, "plumbline.methods.baselines")
    spec = cheap_spec("gramacy", "one-at-a-time", options={}, size=3, rounds=6)
    table = run_trial(spec, tmp_path, tmp_path).table(spec, points=True).to_pylist()
    assert [row["roles"] for row in table] == [["objective", "at_least_zero", "at_least_zero"]] * 9
    for row in table[:3]:
        assert np.isfinite(row["y"]).all()
    for n, row in enumerate(table[3:], start=3):
        assert [np.isfinite(value) for value in row["y"]] == [i == n % 3 for i in range(3)]
        assert np.isfinite(row["f"]).all(), "the truth is whole"
    violations = metric(rows_of(spec, tmp_path), "violation")
    assert (violations >= 0).all()


class HalfSeen(ConstrainedGramacy):
    """Gramacy's problem, whose first constraint cannot be observed in half of its box."""

    def _evaluate_slack_true(self, X: Tensor) -> Tensor:
        slack = super()._evaluate_slack_true(X)
        slack[..., 0] = slack[..., 0].where(X[..., 0] < 0.5, torch.nan)
        return slack


@pytest.mark.slow
@pytest.mark.parametrize("method", ["eic", "epbo", "cjes"])
def test_constrained_optimisation_goes_on_where_a_constraint_was_not_observed(
    method: str, cheap_spec: Make, register: Register, tmp_path: Path
) -> None:
    problem = "plumbline.problems.build"
    register("problem", "half-seen", lambda *_: problem_of(HalfSeen(negate=True), may_fail=True), problem)
    rows = rows_of(cheap_spec("half-seen", method, size=8, rounds=4), tmp_path)
    assert len(rows) == 12
    missing = np.isnan(entries(rows["y"])[:, 1])
    assert 0 < missing[:8].sum() < 8
    assert metric(rows, "penalty_regret").iloc[-1] >= 0
