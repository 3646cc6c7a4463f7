"""Trials of methods on tasks, as tables."""

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import islice
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

from plumbline.api.arguments import checked
from plumbline.api.repository import find_repository
from plumbline.core.errors import PlumblineError, shown
from plumbline.core.nested import merge
from plumbline.core.options import parse
from plumbline.core.places import DATA, STORE, own
from plumbline.core.threads import threads_asked
from plumbline.registry.catalogue import Kind, catalogue
from plumbline.registry.references import ProblemRef
from plumbline.store.spec import TrialSpec
from plumbline.study.experiments import MAX_SEEDS
from plumbline.study.methods_and_tasks import (
    MethodsAndTasks,
    NamedT,
    load_methods_and_tasks,
    replace_inputs,
    unknown_entry,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as arrow

    from plumbline.store.folder import TrialFolder
    from plumbline.trials.session import Watch

NestedOptions = Mapping[str, Any]

ROUNDS, INITIAL, DESIGN = 10, 5, "uniform"
"""Of a trial on a registered problem, where nothing is said: a task says it itself."""


CALLED = {
    "budget.rounds": "rounds",
    "budget.q": "q",
    "budget.initial.size": "initial",
    "budget.initial.design": "design",
}
"""Names of arguments, by the fields of a spec that they are for."""


class TrialRequest(NamedTuple):
    """A method and a task for a trial: one of `method` and `method_class`, one of `task` and `problem`, and changes.

    Attributes:
        method: an entry of config/methods.
        task: an entry of config/tasks.
        method_class: a registered class, in place of a method.
        problem: a registered problem, in place of a task; `ackley-2` is `ackley` with option `dim: 2`.
        options: of the method; they are laid over those of its entry, at any depth.
        problem_options: of the problem, likewise.
        rounds, q, initial, design: of the trial, where they differ from the task's.
    """

    method: str = ""
    task: str = ""
    method_class: str = ""
    problem: str = ""
    options: NestedOptions = {}  # noqa: RUF012 - read only
    problem_options: NestedOptions = {}  # noqa: RUF012
    rounds: int | None = None
    q: int | None = None
    initial: int | None = None
    design: str | None = None

    def spec(self, entries: MethodsAndTasks, stand_ins: Mapping[str, str], seed: int) -> TrialSpec:
        """Return the spec of the trial.

        Args:
            entries: the methods and tasks of the repository.
            stand_ins: datasets and models that take the place of others, where the options do not name these.
            seed: of the trial.

        Raises:
            PlumblineError: a name or an option that stands for nothing, with the nearest ones.
        """
        for one, other in ("method", "class"), ("task", "problem"):
            if bool(self._of(one)) == bool(self._of(other)):
                raise PlumblineError(f"give either a {one} (an entry of config/{one}s) or a {other} (registered code)")
        entered = [
            (
                "method",
                self.method_class in entries.methods and not catalogue().has("method", self.method_class),
                self.method_class,
            ),
            ("task", self.problem in entries.tasks and not is_problem(self.problem), self.problem),
        ]
        for kind, wrong, name in entered:
            if wrong:
                raise PlumblineError(f"{name!r} is an entry of config/{kind}s, not a registered class: --{kind} {name}")
        for options in self.options, self.problem_options:
            if not isinstance(options, Mapping):
                raise PlumblineError(f"options are a mapping of names to values (got {shown(options)})")
        problem, budget = self._problem(entries)
        spec = parse(
            TrialSpec,
            {
                "problem": {**problem, "options": merge(problem["options"], dict(self.problem_options))},
                "method": self._method(entries),
                "seed": seed,
                "budget": budget,
                "task": self.task,
            },
            "trial",
            CALLED,
        )
        spec.check("trial")
        inputs = {
            "problem": _with_stand_ins("problem", spec.problem, stand_ins, self.problem_options),
            "method": _with_stand_ins("method", spec.method, stand_ins, self.options),
        }
        return spec.model_copy(update=inputs)

    def _of(self, kind: str) -> str:
        return self.method_class if kind == "class" else getattr(self, kind)

    def _method(self, entries: MethodsAndTasks) -> dict[str, Any]:
        if not self.method:
            return {"name": self.method_class, "options": dict(self.options)}
        if self.method not in entries.methods:
            raise unknown_entry("method", self.method, entries.methods)
        found = entries.methods[self.method].ref.model_dump()
        return {**found, "options": merge(found["options"], dict(self.options))}

    def _problem(self, entries: MethodsAndTasks) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the problem as it is entered, and the budget."""
        if self.task:
            if self.task not in entries.tasks:
                raise unknown_entry("task", self.task, entries.tasks)
            task = entries.tasks[self.task]
            problem, budget = task.problem.model_dump(), task.budget.model_dump()
        else:
            problem = {"name": self.problem, "options": {}}
            budget = {"initial": {"design": DESIGN, "size": INITIAL}, "rounds": ROUNDS}
        if self.design not in (None, budget["initial"]["design"]):
            budget["initial"].pop("options", None)  # those of another design
        changes = {"rounds": self.rounds, "q": self.q, "initial": {"design": self.design, "size": self.initial}}
        return problem, merge(budget, _given(changes))


def _with_stand_ins(kind: Kind, named: NamedT, stand_ins: Mapping[str, str], given: NestedOptions) -> NamedT:
    """Return a problem or a method on the stand-ins for its datasets and models, except where options are `given`."""
    found = replace_inputs(kind, named, stand_ins)
    return found.model_copy(update={"options": merge(found.options, dict(given))})


def is_problem(name: str) -> bool:
    """Return whether a registered problem goes by this name, perhaps with its dimension: `ackley-2`."""
    return catalogue().has("problem", ProblemRef(name=name).name)


def _given(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested changes without those that are None."""
    inner = {key: _given(value) if isinstance(value, dict) else value for key, value in changes.items()}
    return {key: value for key, value in inner.items() if value is not None and value != {}}


def entries_and_stand_ins(repository: Path, real: bool) -> tuple[MethodsAndTasks, Mapping[str, str]]:
    """Return the methods and tasks of a repository, and the generated datasets that stand in unless data are `real`."""
    from plumbline.api.repository import read_configuration
    from plumbline.data.datasets import load_datasets
    from plumbline.data.models import load_models
    from plumbline.study.plan import Plan

    config = repository / "config"
    entries = load_methods_and_tasks(config)
    if real:
        return entries, {}
    generated = read_configuration(repository).model_copy(update={"data": "generated", "instead": {}})
    datasets, models = load_datasets(config / "datasets.yaml"), load_models(config / "models.yaml")
    return entries, Plan(generated, {}, entries, datasets, models).stand_ins


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch, NumPy and SciPy to one thread, or to OMP_NUM_THREADS threads.

    With more threads small matrices are slower, and the last digits of results depend on the number of threads.
    """
    wanted = threads_asked()
    import scipy.linalg  # noqa: F401  # its own BLAS must be there to be limited
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(wanted)
    try:
        with threadpool_limits(wanted, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def watching(log: bool, reasons: bool = False) -> "Iterator[Watch]":
    """Yield a factory of the observers of a trial: a bar in a terminal, else a `log`; MLflow too where a server is.

    Bars and log say that a trial failed, and the `reasons` too where these are wanted: where nobody else tells them.

    An interrupt has a note that says after which round it came.
    """
    from plumbline.store.observers import LastRound, LineLog, ProgressBars

    last = LastRound()
    with ExitStack() as stack:
        stack.enter_context(last.noted())
        makers: list[Any] = [lambda: last]
        if sys.stderr.isatty():
            bars = ProgressBars(reasons)
            stack.callback(bars.close)
            makers.append(bars.bar)
        elif log:
            makers.append(lambda: LineLog(reasons=reasons))
        uri = os.environ.get("MLFLOW_TRACKING_URI", "")
        if uri.startswith(("http://", "https://")):
            from plumbline.tracking.live import LiveRun

            makers.append(lambda: LiveRun(uri))
        yield lambda: [make() for make in makers]


def run_specs(
    specs: "list[TrialSpec]",
    store: Path,
    data: Path,
    device: str = "cpu",
    log: bool = True,
    lockstep: int = 1,
    reasons: bool = False,
    timeout: float | None = None,
) -> "list[TrialFolder]":
    """Run trials of one method on one task, or find them done, and return their folders.

    See `run_trials`; for `log` and `reasons` see `watching`, for `timeout` see `timeout_of_trials`.
    """
    from plumbline.core.device import device_called
    from plumbline.store.folder import TrialFolder
    from plumbline.store.keys import look_again, trial_key
    from plumbline.trials.runner import run_trials
    from plumbline.trials.timeouts import timeout_of_trials

    look_again()
    folders = [TrialFolder(store, trial_key(spec, data)) for spec in specs]
    with one_thread(), timeout_of_trials(timeout, folders), watching(log, reasons) as watch:
        return run_trials(specs, store, data, watch, device_called(device), lockstep=lockstep)


def reason_of_failure(folder: "TrialFolder") -> str:
    """Return one line that says why a trial failed and where its traceback is."""
    reason, where = folder.reason(), folder.error_path
    pointer = f"see {where}; " if str(where) not in reason else ""
    return f"{reason} ({pointer}{folder.cleared_by})"


@checked
def run(
    method: str = "",
    task: str = "",
    *,
    method_class: str = "",
    problem: str = "",
    options: NestedOptions | None = None,
    problem_options: NestedOptions | None = None,
    seeds: int | Iterable[int] = 1,
    rounds: int | None = None,
    q: int | None = None,
    initial: int | None = None,
    design: str | None = None,
    real_data: bool = False,
    store: str | Path | None = None,
    data: str | Path | None = None,
    device: str = "cpu",
    log: bool = False,
    lockstep: int = 1,
    timeout: float | None = None,
) -> "pd.DataFrame":
    """Run a method on a task, one trial for each seed, and return all evaluations.

    Trials that are in the store are not run again, and an interrupted trial continues.

    Args:
        method: an entry of config/methods (`pb.methods()`), as figures and claims name it.
        task: an entry of config/tasks (`pb.tasks()`): a problem, its initial design, rounds and q.
        method_class: a registered class (`pb.classes("method")`) instead of a method.
        problem: a registered problem (`pb.classes("problem")`) instead of a task: 5 uniform points and 10 rounds.
        options: nested options of the method, which override those of its entry: `{"model": {"kernel": "rbf"}}`.
        problem_options: options of the problem, likewise: `{"noise_std": 0.1}`.
        seeds: the number of seeds, 0, 1, ..., or a list of seeds.
        rounds: the number of rounds after the initial design.
        q: evaluations per round.
        initial: the number of points of the initial design.
        design: the initial design (`pb.classes("design")`).
        real_data: whether to read the datasets that the task or problem has; otherwise generated data stand in for
            them, except for those that the options name.
        store: the folder of all trials; by default `results/store` of the workspace.
        data: the folder of built features; by default `data` of the workspace.
        device: cpu, cuda or auto.
        log: whether to print a line for each round to standard error; a terminal shows a progress bar in any case.
        lockstep: the greatest number of seeds that run in lockstep, if the method supports it. This is faster, and
            gives the same numbers except for the seconds, of which each seed gets an equal share.
        timeout: seconds that one call of the method or problem may take before its trial fails; None: no limit.

    Returns:
        A row for each seed and evaluation: `method`, `task`, `seed`, `iteration` (0: the initial design), `evaluation`,
        `x1` to `xd`, and `y` (`y1`, ... for several outcomes). With one objective also `best_y` and `regret` (NaN if
        the optimum is unknown), with constraints `violation` and `best_f`, with several objectives `hypervolume`. Then
        `pit`, the forecast's distribution function at y, and the `seconds` of the round. Every outcome is maximised:
        functions that the literature minimises are negated.

    Raises:
        PlumblineError: an unknown name or option, or no successful trial. If only some seeds fail, each is a warning.

    Examples:
        >>> runs = pb.run("ei", "ackley-2", seeds=3)
        >>> runs.groupby("seed")["regret"].last()
        >>> pb.run(method_class="ucb", problem="branin", options={"model": {"kernel": "rbf"}})
    """
    import pandas as pd

    request = TrialRequest(
        method, task, method_class, problem, options or {}, problem_options or {}, rounds, q, initial, design
    )
    entries, stand_ins = entries_and_stand_ins(find_repository(), real_data)
    specs = [request.spec(entries, stand_ins, seed) for seed in seed_numbers(seeds)]
    places = Path(store or own(STORE)), Path(data or own(DATA))
    folders = run_specs(specs, *places, device, log, lockstep, timeout=timeout)
    tables, reasons = [], []
    for spec, folder in zip(specs, folders, strict=True):
        if folder.failed:
            reasons.append(f"seed {spec.seed} failed: {reason_of_failure(folder)}")
        else:
            tables.append(evaluations(folder.table(spec, points=True)))
    if not tables:
        raise PlumblineError(reasons[0])
    for reason in reasons:
        warnings.warn(reason, stacklevel=2)
    return pd.concat(tables, ignore_index=True)


def seed_numbers(seeds: int | Iterable[int]) -> list[int]:
    """The seeds 0, 1, ... of which there are so many, or those given.

    Raises:
        PlumblineError: none, one that is given twice, more than MAX_SEEDS, or something that is no whole number.
    """
    if getattr(seeds, "ndim", 1) == 0:  # an array that is one number
        seeds = seeds.item()  # type: ignore[union-attr]
    given = list(islice(seeds, MAX_SEEDS + 1)) if isinstance(seeds, Iterable) else [seeds]
    if not all(isinstance(one, SupportsIndex) and not isinstance(one, bool) for one in given):
        raise PlumblineError(f"seeds: give their number or a list of whole numbers (got {shown(seeds)})")
    if (len(given) if isinstance(seeds, Iterable) else index(seeds)) > MAX_SEEDS:
        raise PlumblineError(f"seeds: at most {MAX_SEEDS:,}")
    numbers = list(map(index, given)) if isinstance(seeds, Iterable) else list(range(index(seeds)))
    if not numbers:
        raise PlumblineError("no seeds: give their number or a list of them")
    if len(set(numbers)) < len(numbers):
        raise PlumblineError(f"seeds: {next(one for one in numbers if numbers.count(one) > 1)} is there twice")
    return numbers


def evaluations(table: "arrow.Table") -> "pd.DataFrame":
    """Return the evaluations of one trial's records, with the points, as `run` describes them.

    The row that says why a trial failed is not among them.
    """
    import numpy as np
    import pandas as pd
    import pyarrow.compute as compute

    from plumbline.metrics.frames import entries, frame_of
    from plumbline.metrics.registry import metric

    table = table.filter(compute.equal(table["status"], "ok"))
    if not table.num_rows:
        return pd.DataFrame()
    rows = frame_of(table)
    roles = rows["roles"].iloc[0]
    several = sum(role == "objective" for role in roles) > 1
    running = ["hypervolume"] if several else ["best_y", "regret"] if len(roles) == 1 else ["violation", "best_f"]
    X = np.asarray(table["x"].to_pylist(), dtype=np.float64)
    Y = entries(rows["y"])
    names = ["y"] if Y.shape[1] == 1 else [f"y{i + 1}" for i in range(Y.shape[1])]
    place = rows[["method", "task", "seed", "iteration", "evaluation"]].astype({"method": str, "task": str})
    return pd.concat(
        [
            place,
            pd.DataFrame(X, columns=[f"x{i + 1}" for i in range(X.shape[1])]),
            pd.DataFrame(Y, columns=names),
            pd.DataFrame({name: metric(rows, name).to_numpy() for name in (*running, "pit")}),
            rows["round_seconds"].rename("seconds"),
        ],
        axis="columns",
    )
