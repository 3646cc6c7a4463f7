"""One seed: spec -> loop -> record, with a checkpoint after every round.

Interrupted and resumed equals uninterrupted, byte for byte: nothing that a round computes depends on anything but the
spec, the rows so far, the method's state, and random streams that are derived anew for each round.
"""

import math
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import pyarrow as arrow
import torch
from botorch.test_functions.base import BaseTestProblem
from torch import Tensor

from plumbline import files, records, seeding
from plumbline.calibration.alpha import alpha_at
from plumbline.calibration.predictive import Predictive, SetPredictive
from plumbline.errors import PlumblineError
from plumbline.keys import trial_key
from plumbline.methods.base import Domain, History, Method, Proposal, build_method
from plumbline.observers import Observer
from plumbline.problems.base import Context, Observed, build_problem, evaluate, observe
from plumbline.problems.designs import initial_design, uniform
from plumbline.provenance import provenance
from plumbline.records import Row
from plumbline.specs import TrialSpec
from plumbline.store import TrialFolder

RETRIABLE = (OSError, MemoryError, torch.cuda.OutOfMemoryError)
"""Accidents of the machine, not of the trial: the job fails, its checkpoint stays, and another attempt goes on."""


@dataclass
class Progress:
    """All that a trial has to show so far; this is what a checkpoint holds."""

    rows: list[Row] = field(default_factory=list)
    timings: list[Row] = field(default_factory=list)
    snapshots: list[Row] = field(default_factory=list)
    method_state: dict[str, Any] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """Number of rounds behind it; 0 after the initial design, -1 before."""
        return self.timings[-1]["iteration"] if self.timings else -1


def save(progress: Progress, folder: TrialFolder) -> None:
    """Write the checkpoint atomically: a kill leaves this one or the one before."""
    with files.atomic(folder.checkpoint_path) as part:
        torch.save(vars(progress), part)


def restore(folder: TrialFolder) -> Progress:
    """Return what the checkpoint holds, or nothing where there is none that can be read."""
    if not folder.checkpoint_path.is_file():
        return Progress()
    try:
        return Progress(**torch.load(folder.checkpoint_path, weights_only=True))
    except Exception as error:  # a half-written file of a crashed machine may raise anything
        warnings.warn(f"{folder.checkpoint_path} cannot be read ({error}): the trial starts over", stacklevel=2)
        return Progress()


class Trial:
    """One method on one problem with one seed."""

    def __init__(self, spec: TrialSpec, folder: TrialFolder, data: Path) -> None:
        self.spec = spec
        self.folder = folder
        self.identity = spec.problem.identity()
        context = Context(data=data, generator=self._stream("problem"))
        self.problem: BaseTestProblem = build_problem(spec.problem.name, spec.problem.options, context)
        self.domain = domain_of(self.problem)
        self.method: Method = build_method(spec.method.name, spec.method.options, self.domain)
        self.optimum = optimal_value(self.problem)
        self.holdout = self._holdout()
        self.progress = Progress()

    def _stream(self, name: seeding.Stream, index: int = 0) -> torch.Generator:
        return seeding.generator(self.identity, self.spec.seed, name, index)

    def _holdout(self) -> tuple[Tensor, Tensor] | None:
        """Return the points and observations that predictions are checked on besides the queries."""
        size = self.spec.diagnostics.holdout
        if not size:
            return None
        stream = self._stream("holdout")
        X = getattr(self.problem, "holdout", None)
        if X is None:
            X = uniform(self.problem.bounds, size, stream)
        if isinstance(self.problem, Observed):
            return X, self.problem.observe(X, [stream] * len(X))
        F = self.problem(X, noise=False).reshape(len(X), -1)
        Y, _ = evaluate(self.problem, X, torch.randn(F.shape, generator=stream, dtype=F.dtype))
        return X, Y

    def history(self) -> History:
        """Return what has been observed so far."""
        return History(
            torch.tensor([row["x"] for row in self.progress.rows], dtype=torch.float64),
            torch.tensor([row["y"] for row in self.progress.rows], dtype=torch.float64),
            self.spec.budget.initial.size,
        )

    def run(self, observers: Sequence[Observer] = ()) -> None:
        """Go on from `progress` to the end of the budget."""
        self.method.load_state_dict(self.progress.method_state)
        for iteration in range(self.progress.rounds + 1, self.spec.budget.rounds + 1):
            started = perf_counter()
            rows, seconds = self._first() if iteration == 0 else self._round(iteration)
            self.progress.rows += rows
            self.progress.method_state = self.method.state_dict()
            timing = {name: seconds.get(name.removesuffix("_seconds"), 0.0) for name in records.SECONDS}
            timing["round_seconds"] = perf_counter() - started
            self.progress.timings.append({"key": self.folder.key, "iteration": iteration, **timing})
            save(self.progress, self.folder)
            for observer in observers:
                observer.round(rows, timing)

    def _first(self) -> tuple[list[Row], dict[str, float]]:
        """Evaluate the initial design."""
        initial = self.spec.budget.initial
        X = initial_design(initial.design, self.problem, initial.size, self._stream("design"))  # type: ignore[arg-type]
        started = perf_counter()
        Y, F = self._evaluate(X)
        seconds = {"evaluate": perf_counter() - started}
        return self._rows(0, X, Y, F, [{} for _ in X], []), seconds

    def _round(self, iteration: int) -> tuple[list[Row], dict[str, float]]:
        """Ask, check what the model says of the answer, evaluate, tell."""
        history = self.history()
        stream = self._stream("method", iteration)
        with warnings.catch_warnings(record=True) as caught, every_warning(), torch.random.fork_rng(devices=[]):
            # Some of BoTorch draws from the global stream: give it one of this round's own, and put the old one back.
            torch.manual_seed(stream.initial_seed() % 2**31)
            proposal = self.method.ask(history, self.spec.budget.q, stream)
        forecast = proposal.predict(proposal.X) if proposal.predict else None
        alphas = [alpha_at(alpha, len(history)) for alpha in self.spec.diagnostics.alphas]
        holdout = self._holdout_coverage(iteration, proposal, history, alphas)
        self._snapshot(iteration, proposal, alphas[0])
        started = perf_counter()
        Y, F = self._evaluate(proposal.X)
        seconds = {**proposal.seconds, "evaluate": perf_counter() - started}
        self.method.tell(proposal.X, Y)
        judged = judge(forecast, Y, F, alphas) if forecast else [{} for _ in Y]
        extra = {"holdout_coverage": holdout, "notes": list(proposal.notes.items()), **self._widths(proposal, alphas)}
        rows = self._rows(iteration, proposal.X, Y, F, [row | extra for row in judged], event_names(caught))
        return rows, seconds

    def _evaluate(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return noisy and noise-free values at `X`; the noise is that of these evaluations under any method."""
        first = len(self.progress.rows)
        Y, F = observe(self.problem, X, [self._stream("noise", first + i) for i in range(len(X))])
        for i in range(len(X)):
            if not bool(torch.isfinite(Y[i]).all()):
                raise PlumblineError(
                    f"problem {self.spec.problem.label!r} returned {Y[i].tolist()} at evaluation {first + i}, "
                    f"x = {X[i].tolist()}: an objective must be finite; penalise such points in the problem instead"
                )
        return Y, F

    def _holdout_coverage(
        self, iteration: int, proposal: Proposal, history: History, alphas: list[float]
    ) -> list[float]:
        """Return the share of holdout observations in the model's sets, one a level."""
        if self.holdout is not None and proposal.predict is not None:
            X, Y = self.holdout
            return coverage(proposal.predict(X), Y, alphas)
        held = round(self.spec.diagnostics.holdout_fraction * len(history))
        if held == 0:
            return []
        order = torch.randperm(len(history), generator=self._stream("holdout", iteration))
        kept = History(history.X[order[held:]], history.Y[order[held:]])
        predict = self.method.predictor(kept)
        if predict is None:
            return []
        return coverage(predict(history.X[order[:held]]), history.Y[order[:held]], alphas)

    def _widths(self, proposal: Proposal, alphas: list[float]) -> Row:
        """Return how wide the model's sets are at the optimum and on average over the holdout, if that is asked for."""
        if not self.spec.diagnostics.widths or proposal.predict is None or self.holdout is None:
            return {}
        places = {"holdout_width": self.holdout[0], "optimum_width": optimum_of(self.problem)}
        forecasts = {name: proposal.predict(X) for name, X in places.items()}
        return {
            name: [forecast.width(alpha).expand(len(places[name])).mean().item() for alpha in alphas]
            for name, forecast in forecasts.items()
        }

    def _snapshot(self, iteration: int, proposal: Proposal, alpha: float) -> None:
        """Keep a picture of the model on a grid, where the spec asks for one after the round before."""
        wanted = self.spec.diagnostics.snapshots
        if wanted is None or iteration not in wanted.rounds or proposal.predict is None:
            return
        low, high = self.domain.bounds[:, 0].tolist()
        grid = torch.linspace(low, high, wanted.points, dtype=torch.float64).unsqueeze(-1)
        forecast = cast(Predictive, proposal.predict(grid))
        utility = proposal.acquisition(grid) if proposal.acquisition else torch.full((wanted.points,), torch.nan)
        width = forecast.width(alpha).expand(wanted.points)
        columns = (grid[:, 0], self.problem(grid, noise=False), forecast.mean, forecast.sd, width, utility)
        self.progress.snapshots += [
            dict(zip(SNAPSHOT.names, (self.folder.key, iteration, *values), strict=True))
            for values in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def _rows(
        self, iteration: int, X: Tensor, Y: Tensor, F: Tensor, diagnoses: list[Row], events: list[str]
    ) -> list[Row]:
        """Return the rows of one round: what was asked, what came, and the bests so far."""
        rows: list[Row] = []
        earlier = self.progress.rows
        for i, diagnosis in enumerate(diagnoses):
            row: Row = {
                "key": self.folder.key,
                "task": self.spec.task,
                "method": self.spec.method.label,
                "seed": self.spec.seed,
                "iteration": iteration,
                "evaluation": len(earlier) + i,
                "x": X[i].tolist(),
                "y": Y[i].tolist(),
                "f": F[i].tolist(),
                "optimum": self.optimum if Y.shape[1] == 1 else math.nan,
                "ref_point": None if self.domain.ref_point is None else self.domain.ref_point.tolist(),
                "roles": ["objective"] * Y.shape[1],
                **diagnosis,
                "events": events,
                "status": "ok",
            }
            rows.append(row)
        return rows


SNAPSHOT = arrow.schema(
    [
        ("key", arrow.string()),
        ("iteration", arrow.int64()),
        ("x", arrow.float64()),
        ("f", arrow.float64()),
        ("mean", arrow.float64()),
        ("sd", arrow.float64()),
        ("width", arrow.float64()),
        ("acquisition", arrow.float64()),
    ]
)
"""A picture of the model before the query of an iteration, on a grid of a one-dimensional problem; `width` is that of
its sets of the first level."""


def domain_of(problem: BaseTestProblem) -> Domain:
    """Return what a method may know of a problem."""
    return Domain(
        problem.bounds,
        getattr(problem, "candidates", None),
        getattr(problem, "ref_point", None),
        getattr(problem, "shift", None),
        getattr(problem, "blocks", None),
    )


def optimum_of(problem: BaseTestProblem) -> Tensor:
    """Return where a problem is greatest: `1 x d`, the first of the places that are known.

    Raises:
        PlumblineError: none is known.
    """
    if getattr(problem, "optimizers", None) is None:
        raise PlumblineError("`diagnostics.widths` needs a problem whose optimum is known")
    return problem.optimizers[:1].to(problem.bounds)


def optimal_value(problem: BaseTestProblem) -> float:
    """Return the greatest value of a single-outcome problem, NaN where it is unknown."""
    try:
        return float(problem.optimal_value)
    except (AttributeError, NotImplementedError):
        return math.nan


def coverage(forecast: SetPredictive, Y: Tensor, alphas: list[float]) -> list[float]:
    """Return the share of `n x m` observations in their sets, one a level."""
    y = Y.squeeze(-1)
    return [forecast.covers(y, alpha).mean().item() for alpha in alphas]


def judge(forecast: SetPredictive, Y: Tensor, F: Tensor, alphas: list[float]) -> list[Row]:
    """Return how the forecasts fared, one row a point; with several outcomes, how the joint ones did.

    Args:
        forecast: made before the observations.
        Y: `q x m` observations.
        F: `q x m` values without noise.
        alphas: miscoverage levels of the sets to check.
    """
    y = Y.squeeze(-1)
    columns = {
        "nll": -forecast.log_prob(y),
        "covered": torch.stack([forecast.covers(y, alpha) for alpha in alphas], dim=-1),
        "f_covered": torch.stack([forecast.covers(F.squeeze(-1), alpha) for alpha in alphas], dim=-1),
        "width": torch.stack([forecast.width(alpha).expand(len(y)) for alpha in alphas], dim=-1),
    }
    if Y.shape[1] == 1:
        single = cast(Predictive, forecast)
        columns |= {
            "predicted_mean": single.mean,
            "predicted_sd": single.sd,
            "pit": single.cdf(y),
            "crps": single.crps(y),
        }
    values = (column.tolist() for column in columns.values())
    return [dict(zip(columns, row, strict=True)) | {"alpha": alphas} for row in zip(*values, strict=True)]


@contextmanager
def every_warning() -> Iterator[None]:
    """Let warnings come each time inside the block: those that torch gives once a process would tell a resumed trial
    from an uninterrupted one."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    warnings.simplefilter("always")
    try:
        yield
    finally:
        torch.set_warn_always(before)


ADVICE = ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning", "NumericsWarning")
"""Warnings that advise the programmer (BoTorch: prefer LogEI) and say nothing of this round's numbers."""


def event_names(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return the kinds of numerical warnings of a round: jitter, retries, lost precision."""
    return sorted({warning.category.__name__ for warning in caught} - set(ADVICE))


def write_results(folder: TrialFolder, spec: TrialSpec, progress: Progress, failure: Row | None = None) -> None:
    """Write what a finished trial leaves behind; the records come last, because they say that it is finished."""
    rows = progress.rows + ([failure] if failure else [])
    records.write_table(folder.timings_path, arrow.Table.from_pylist(progress.timings, schema=records.TIMING))
    if progress.snapshots:
        records.write_table(folder.snapshots_path, arrow.Table.from_pylist(progress.snapshots, schema=SNAPSHOT))
    wall = sum(timing["round_seconds"] for timing in progress.timings)
    facts = {**provenance(), "spec": spec.model_dump(mode="json"), "wall_seconds": wall}
    folder.write_json(folder.provenance_path, facts)
    records.write_table(folder.records_path, records.to_table(rows))
    if failure is None:
        folder.checkpoint_path.unlink(missing_ok=True)


def failure_row(folder: TrialFolder, spec: TrialSpec, progress: Progress, message: str) -> Row:
    """Return the row that says why a trial stopped."""
    return {
        "key": folder.key,
        "task": spec.task,
        "method": spec.method.label,
        "seed": spec.seed,
        "iteration": progress.rounds + 1,
        "evaluation": len(progress.rows),
        "x": [],
        "y": [],
        "f": [],
        "events": [],
        "status": "error",
        "error": message,
    }


def describe(error: Exception) -> str:
    """Return one line for what a trial raised."""
    if isinstance(error, PlumblineError):
        return str(error)
    remedy = {
        "NotPSDError": "the kernel matrix is not positive definite even with jitter: raise the noise floor or drop "
        "duplicated points",
        "ModelFittingError": "no attempt to fit the hyperparameters succeeded: try other priors",
    }.get(type(error).__name__, "see error.json in the trial's folder")
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]} ({remedy})"


def run_trial(spec: TrialSpec, store: Path, data: Path, observers: Sequence[Observer] = ()) -> TrialFolder:
    """Run a trial, or go on with it, or find it done.

    A method or problem that raises ends the trial with an error record; accidents of the machine (a full disk, no
    memory) pass through, and the checkpoint stays for the next attempt.

    Args:
        spec: what to run.
        store: the folder of all trials.
        data: the folder of built features.
        observers: who is told of each round.

    Returns:
        The trial's folder, with its records in place.
    """
    folder = TrialFolder(store, trial_key(spec, data))
    with folder.lock():
        if folder.done:
            return folder
        folder.error_path.unlink(missing_ok=True)
        folder.write_json(folder.path / "spec.json", spec.model_dump(mode="json"))
        progress, message = restore(folder), None
        for observer in observers:
            observer.start(folder.key, spec, max(progress.rounds, 0))
        try:
            trial = Trial(spec, folder, data)
            trial.progress = progress
            trial.run(observers)
            write_results(folder, spec, progress)
        except RETRIABLE:
            raise
        except Exception as error:
            message = describe(error)
            trace = traceback.format_exc()
            folder.write_json(folder.error_path, {"error": message, "round": progress.rounds + 1, "traceback": trace})
            write_results(folder, spec, progress, failure_row(folder, spec, progress, message))
        for observer in observers:
            observer.end(message)
    return folder
