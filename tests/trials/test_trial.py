"""One trial: the same start for every method, questions and answers, outcomes that were not asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from botorch.test_functions import Branin
from handy import Make, Register, bytes_of, each, interrupted, rows_of

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.methods.base import Method, Proposal
from plumbline.problems.base import Context, Problem
from plumbline.problems.build import problem_of
from plumbline.problems.options import ProblemOptions
from plumbline.registry.references import InitialDesign
from plumbline.spaces.stepped import Stepped
from plumbline.store.spec import Budget, TrialSpec
from plumbline.trials import run_trial, trial
from plumbline.trials.trial import Trial


def start_of(spec: TrialSpec, root: Path) -> tuple[list[list[float]], list[float]]:
    """The initial design, and the noise of every evaluation."""
    rows = rows_of(run_trial(spec, root, root))
    noise = [row["y"][0] - row["f"][0] for row in rows]
    return [row["x"] for row in rows if row["iteration"] == 0], noise


@pytest.mark.slow
def test_methods_are_paired_and_seeds_are_not(cheap_spec: Make, tmp_path: Path) -> None:
    noisy = {"name": "branin", "options": {"noise_std": 2.0}}
    design, noise = start_of(cheap_spec(noisy, "random", rounds=2, q=2), tmp_path)
    for method in ("sobol", "ei"):
        other_design, other_noise = start_of(cheap_spec(noisy, method, rounds=2, q=2), tmp_path)
        assert other_design == design
        assert other_noise == pytest.approx(noise, abs=1e-9)
    # One at a time or two at a time: evaluation i has the noise of evaluation i.
    _, singly = start_of(cheap_spec(noisy, "random", rounds=4, q=1), tmp_path)
    assert singly == pytest.approx(noise, abs=1e-9)
    other_design, other_noise = start_of(cheap_spec(noisy, "random", rounds=2, q=2, seed=1), tmp_path)
    assert not set(map(tuple, other_design)) & set(map(tuple, design))
    assert all(abs(a - b) > 1e-6 for a, b in zip(noise, other_noise, strict=True))
    assert len(set(noise)) == len(noise)


def test_trials_can_share_their_start_and_their_chance(cheap_spec: Make, tmp_path: Path) -> None:
    """The i-th evaluation of any trial has the same fadings: at the same point, the same observation."""

    def start(seed: int, **options: Any) -> tuple[Any, Any]:
        problem = {"name": "radio", "options": options}
        budget = Budget(initial=InitialDesign(design="shared", size=3), rounds=1)
        spec = cheap_spec(problem, "random", seed=seed).model_copy(update={"budget": budget})
        step = Trial(spec, tmp_path).begin()
        return step.X.tolist(), step.Y.tolist()

    (X, Y), (other_X, other_Y) = (start(seed, shared_fadings=True) for seed in (0, 1))
    assert other_X == X
    assert other_Y == Y
    (X, Y), (other_X, other_Y) = (start(seed) for seed in (0, 1))
    assert other_X == X
    assert not set(map(tuple, Y)) & set(map(tuple, other_Y))


def test_labels_change_no_draw(cheap_spec: Make, tmp_path: Path) -> None:
    spec = cheap_spec("branin", "random", label="mine", task="here")
    plain = cheap_spec("branin", "random")
    first = run_trial(spec, tmp_path, tmp_path)
    second = run_trial(plain, tmp_path, tmp_path)
    assert first.path == second.path
    assert set(first.table(spec)["method"].to_pylist()) == {"mine"}
    assert set(first.table(spec)["task"].to_pylist()) == {"here"}
    assert set(second.table(plain)["task"].to_pylist()) == {"branin"}


def test_questions_and_answers(cheap_spec: Make, tmp_path: Path) -> None:
    one = Trial(cheap_spec("branin", "random", rounds=1, q=3), tmp_path)
    assert one.beginning
    assert not one.done
    step = one.begin()
    assert len(one.log) == 0, "the log is the caller's"
    one.log.append(step, step.timing(0.0))
    assert not one.beginning
    question = one.request()
    assert (question.q, len(question.history), question.history.initial) == (3, 4, 4)
    proposal = question.ask()
    assert isinstance(proposal, Proposal)
    step = one.answer(question, proposal)
    assert (step.iteration, len(step.X)) == (1, 3)
    one.log.append(step, step.timing(0.0))
    assert one.done


@pytest.mark.parametrize(("size", "calls"), [(7, [7]), (8, [7, 1]), (20, [7, 7, 6])])
def test_a_large_design_is_evaluated_in_parts(
    size: int,
    calls: list[int],
    cheap_spec: Make,
    toy_problem: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noisy = {"name": "branin", "options": {"noise_std": 2.0}}
    spec = cheap_spec(noisy, size=size, rounds=1)
    whole = bytes_of(run_trial(spec, tmp_path / "whole", tmp_path))
    monkeypatch.setattr(trial, "AT_ONCE", 7)
    seen = []

    class Witness:
        def start(self, key: str, spec: TrialSpec, done: int, best: float) -> None: ...
        def end(self, error: str | None) -> None: ...
        def round(self, rows: Any, seconds: dict[str, float]) -> None:
            seen.append((rows[0]["iteration"], rows[0]["evaluation"], len(rows)))

    folder = run_trial(spec, tmp_path / "parts", tmp_path, [Witness()])
    assert bytes_of(folder) == whole
    assert [n for iteration, _, n in seen if iteration == 0] == calls
    assert [first for iteration, first, _ in seen if iteration == 0] == [7 * i for i in range(len(calls))]
    timings = folder.table(spec).select(["iteration", "round_seconds"]).to_pylist()
    assert len({row["round_seconds"] for row in timings if row["iteration"] == 0}) == 1, "the seconds are added up"


class Partial(Method):
    """Asks for the first outcome of its first point and for the second of the others."""

    told: list[torch.Tensor] = []  # noqa: RUF012

    def ask(self, history: History, q: int, generator: torch.Generator) -> Proposal:
        U = torch.rand(q, 2, generator=generator, dtype=torch.float64)
        observed = torch.zeros(q, 2, dtype=torch.bool)
        observed[0, 0] = observed[1:, 1] = True
        return Proposal(U, observed=observed)

    def tell(self, X: torch.Tensor, Y: torch.Tensor) -> None:
        Partial.told.append(Y)


def test_what_was_not_asked_for_is_nan(
    cheap_spec: Make, register: Register, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Partial, "told", [])
    register("method", "partial", Partial, "plumbline.methods.baselines")
    spec = cheap_spec("branin-currin", "partial", options={}, rounds=2, q=2)
    rows = rows_of(run_trial(spec, tmp_path, tmp_path))
    assert [row["status"] for row in rows] == ["ok"] * 8, rows[-1]["error"]
    for row in rows:
        assert np.isfinite(row["f"]).all()
        lacking = np.isnan(row["y"]).tolist()
        if row["iteration"] == 0:
            assert lacking == [False, False]
        else:
            assert lacking == ([False, True] if row["evaluation"] % 2 == 0 else [True, False])
            there = ~np.isnan(row["y"])
            assert np.array_equal(np.array(row["y"])[there], np.array(row["f"])[there])
    assert Partial.told[0].isnan().tolist() == [[False, True], [True, False]]


def test_a_tabular_trial(cheap_spec: Make, molecules: Path, tmp_path: Path) -> None:
    options = {"dataset": "generated-molecules", "target": "qed", "pool": 20, "holdout_fraction": 0.25}
    spec = cheap_spec({"name": "molecules", "options": options}, "random", size=5, rounds=10, holdout=1)
    folder = run_trial(spec, tmp_path, molecules)
    rows = rows_of(folder)
    assert [row["status"] for row in rows] == ["ok"] * 15
    assert len({tuple(row["x"]) for row in rows}) == 15, "a row of the table is asked for once"
    assert max(row["f"][0] for row in rows) == pytest.approx(rows[0]["optimum"]), "after the whole table"
    more = spec.model_copy(update={"budget": spec.budget.model_copy(update={"rounds": 11})})
    last = rows_of(run_trial(more, tmp_path, molecules))[-1]
    assert "every row of the table has been evaluated" in last["error"]


def test_the_global_random_state_stays(cheap_spec: Make, tmp_path: Path) -> None:
    torch.manual_seed(1234)
    before = torch.get_rng_state()
    for method in ("random", "sobol", "ei"):
        run_trial(cheap_spec("forrester", method, rounds=1, size=3, holdout=3), tmp_path, tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_global_random_state_does_not_count(cheap_spec: Make, tmp_path: Path) -> None:
    spec = cheap_spec("forrester", "ei", rounds=1, size=3)
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(bytes_of(run_trial(spec, tmp_path / str(seed), tmp_path)))
    assert found[0] == found[1]


class Noting(Method):
    """Notes what the problem notes, under the same name."""

    def ask(self, history: History, q: int, generator: torch.Generator) -> Proposal:
        X = torch.rand(q, 2, generator=generator, dtype=torch.float64)
        return Proposal(X, notes={"low": 7.0})


def test_a_problem_notes_what_its_evaluations_were(cheap_spec: Make, register: Register, tmp_path: Path) -> None:
    """In each round, beside a note of the method that has the same name."""

    def counted(X: torch.Tensor, F: torch.Tensor) -> dict[str, float]:
        return {"low": float((F < -40).sum()), "of": float(len(X))}

    register("problem", "noting", lambda *_: problem_of(Branin(negate=True), notes=counted), "plumbline.problems.rover")
    register("method", "noting", Noting, "plumbline.methods.baselines")
    spec = cheap_spec("noting", "noting", options={}, rounds=4, q=3)
    whole = run_trial(spec, tmp_path / "whole", tmp_path)
    rows = rows_of(whole)
    assert [row["notes"] for row in rows[:4]] == [None] * 4, "the initial design has no notes"
    for first in range(4, 16, 3):
        of_round = rows[first : first + 3]
        low = sum(row["f"][0] < -40 for row in of_round)
        assert [dict(row["notes"]) for row in of_round] == [{"low": 7.0, "problem.low": low, "problem.of": 3.0}] * 3
    assert len({dict(row["notes"])["problem.low"] for row in rows[4:]}) > 1, "else this tests nothing"
    with interrupted(3, "after the answer", KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        run_trial(spec, tmp_path / "parts", tmp_path, ration=each)
    assert bytes_of(run_trial(spec, tmp_path / "parts", tmp_path, ration=each)) == bytes_of(whole)


class OftenWarning(Method):
    """Makes torch warn of something that it says once a process."""

    def ask(self, history: History, q: int, generator: torch.Generator) -> Proposal:
        values = np.zeros(2)
        values.flags.writeable = False
        torch.from_numpy(values)
        return Proposal(self.domain.bounds.mean(dim=0).expand(q, -1))


def test_warnings_given_once_a_process_are_recorded_in_every_round(
    cheap_spec: Make, register: Register, tmp_path: Path
) -> None:
    register("method", "warning", OftenWarning, "plumbline.methods.baselines")
    spec = cheap_spec("branin", "warning", rounds=3, options={})
    events = [row["events"] for row in rows_of(run_trial(spec, tmp_path, tmp_path)) if row["iteration"]]
    assert events == [["UserWarning"]] * 3


def test_snapshots_of_several_inputs_are_refused_before_anything_runs(cheap_spec: Make, tmp_path: Path) -> None:
    spec = cheap_spec("branin", "ei", rounds=3, snapshots={"rounds": [3]})
    with pytest.raises(PlumblineError, match=r"diagnostics\.snapshots: .* 'branin' has 2"):
        Trial(spec, tmp_path)


@pytest.mark.parametrize("design", ["uniform", "sobol", "two-corners"])
def test_initial_points_are_on_the_steps_on_which_they_are_evaluated(
    design: str, cheap_spec: Make, register: Register, tmp_path: Path
) -> None:
    steps = torch.tensor([5.0, 0.0], dtype=torch.float64)

    def stepped(options: ProblemOptions, context: Context) -> Problem:
        function = Branin(negate=True)
        return problem_of(function, space=Stepped(function.bounds, steps))

    register("problem", "stepped", stepped, "plumbline.problems.synthetic")
    spec = cheap_spec("stepped", "random", rounds=0, size=6)
    initial = InitialDesign(design=design, size=6)
    spec = spec.model_copy(update={"budget": spec.budget.model_copy(update={"initial": initial})})
    X = Trial(spec, tmp_path).begin().X
    counted = (X[:, 0] + 5.0) / 5.0
    assert torch.equal(counted, counted.round())
    assert not torch.equal(X[:, 1], X[:, 1].round())


SEARCH = {"search": {"restarts": 1, "raw_samples": 8, "maxiter": 5}}
WITHOUT_BOXES = {
    "kg": SEARCH | {"fantasies": 4},
    "kg-sgd": SEARCH | {"fantasies": 4, "points": 16, "ascent": {"steps": 3}},
    "cucb": {"posterior": {"candidates": 16}, "ratio": {"hidden": 8, "steps": 5}, "search": {"chains": 2, "steps": 6}},
    "exploit": {"base": {"name": "ei", "options": SEARCH}, "gamma": 1.0},
}
"""Methods whose searches do not end in `Stepped.ends`."""


@pytest.mark.parametrize("method", WITHOUT_BOXES)
def test_proposals_are_on_the_steps_on_which_they_are_evaluated(
    method: str, cheap_spec: Make, register: Register, tmp_path: Path
) -> None:
    seen: list[torch.Tensor] = []

    class Watched(Branin):
        def _evaluate_true(self, X: torch.Tensor) -> torch.Tensor:
            seen.append(X)
            return super()._evaluate_true(X)

    def stepped(options: ProblemOptions, context: Context) -> Problem:
        function = Watched(negate=True)
        return problem_of(function, space=Stepped(function.bounds, torch.tensor([5.0, 0.0], dtype=torch.float64)))

    register("problem", "stepped", stepped, "plumbline.problems.synthetic")
    spec = cheap_spec("stepped", method, options=WITHOUT_BOXES[method], rounds=2)
    rows = rows_of(run_trial(spec, tmp_path, tmp_path))
    assert len(rows) == 6
    for first in [*torch.cat(seen)[:, 0].tolist(), *(row["x"][0] for row in rows)]:
        assert (first + 5.0) % 5.0 == 0.0
