"""What a run will cost, before it is launched."""

import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

from pydantic import NonNegativeFloat

from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_csv
from plumbline.core.options import Options, parse
from plumbline.core.places import ATLAS, REFERENCE, own_or_shipped
from plumbline.store.folder import TrialFolder
from plumbline.store.keys import trial_key
from plumbline.store.reference_files import COSTS, EditionFiles
from plumbline.store.spec import TrialSpec
from plumbline.study.resolved import ResolvedRun, job_resources

REFERENCE_COSTS = REFERENCE / COSTS
"""Measured seconds a round on one core of the machine that made the reference results."""

Measurement = tuple[str, str, float]
"""A task, a method, and the seconds that one of its rounds took there."""


@dataclass(frozen=True)
class Costs:
    """Seconds a round, measured in earlier trials: by (task, method), else by method and how slow its task is.

    Attributes:
        seconds: by (task, method), and by ("", method) of all tasks together.
        costly: tasks whose evaluations take longer than what methods do: other tasks say nothing of them, nor they of
            others.
    """

    seconds: dict[tuple[str, str], float]
    costly: Collection[str] = ()

    @classmethod
    def of(cls, measured: Iterable[Measurement], costly: Collection[str] = ()) -> "Costs":
        """Return the medians by task and method, and by method."""
        groups: dict[tuple[str, str], list[float]] = defaultdict(list)
        for task, method, seconds in measured:
            groups[task, method].append(seconds)
            if task not in costly:
                groups["", method].append(seconds)
        return cls({key: median(values) for key, values in groups.items()}, costly)

    @cached_property
    def slowness(self) -> dict[str, float]:
        """What rounds of each task take of what they take on others: the median over methods that were on both."""
        tasks: dict[str, dict[str, float]] = defaultdict(dict)
        for (task, method), seconds in self.seconds.items():
            if task and task not in self.costly:
                tasks[method][task] = seconds
        ratios: dict[str, list[float]] = defaultdict(list)
        for of_method in tasks.values():
            for task, seconds in of_method.items():
                if elsewhere := [other for name, other in of_method.items() if name != task]:
                    ratios[task].append(seconds / median(elsewhere))
        return {task: median(values) for task, values in ratios.items()}

    def round_seconds(self, spec: TrialSpec) -> float | None:
        """Return the expected seconds of a round, or None where nothing like it was ever measured."""
        task, method = spec.task, spec.method.label
        measured = self.seconds.get((task, method))
        if measured is not None or task in self.costly:
            return measured
        elsewhere = self.seconds.get(("", method))
        return None if elsewhere is None else elsewhere * self.slowness.get(task, 1.0)


class Timed(Options):
    """The part of a trial's provenance that says what it took."""

    spec: TrialSpec
    wall_seconds: NonNegativeFloat
    status: Literal["ok", "error"] = "ok"


def _timed(folder: TrialFolder) -> Timed:
    facts = folder.provenance()
    return parse(Timed, {name: facts[name] for name in Timed.model_fields if name in facts}, folder.provenance_path)


def measured_costs(
    store: Path, reference: Path | None = None, costly: Collection[str] = (), atlas: Path | None = None
) -> Costs:
    """Return the costs of the trials in the store, and for what it lacks those of the reference results.

    A trial whose provenance cannot be read is left out, with a warning of one line; so are reference costs.

    Args:
        store: folder of all trials.
        reference: table of the costs of reference results; the package's where None. It goes before the atlas.
        costly: tasks whose evaluations take longer than what methods do.
        atlas: folder of an edition of the atlas; the package's where None.
    """
    measured: list[Measurement] = []
    for path in store.glob("*/provenance.json"):
        if (path.parent / "error.json").is_file():
            continue  # it stopped early: its seconds are not those of its budget
        try:
            facts = _timed(TrialFolder(store, path.parent.name))
        except PlumblineError as error:
            warnings.warn(f"{error}; its time is left out", stacklevel=2)
            continue
        spec = facts.spec
        if spec.budget.rounds and facts.status == "ok":
            measured.append((spec.task, spec.method.label, facts.wall_seconds / spec.budget.rounds))
    found: dict[tuple[str, str], float] = {}
    edition, table = EditionFiles(atlas or own_or_shipped(ATLAS)), reference or own_or_shipped(REFERENCE_COSTS)
    for read, path in ((_of_atlas, edition.cells), (_of_reference, table)):
        if path.is_file():
            try:
                found |= Costs.of(read(path), costly).seconds
            except PlumblineError as error:
                warnings.warn(f"{error}; its times are left out", stacklevel=2)
    return Costs(found | Costs.of(measured, costly).seconds, costly)


def _of_reference(path: Path) -> list[Measurement]:
    frame = read_csv(path, ["task", "method"], ["seconds_a_round"])
    return list(frame[["task", "method", "seconds_a_round"]].itertuples(index=False, name=None))


def _of_atlas(path: Path) -> list[Measurement]:
    """Return what a trial of each cell that was run took, divided by the rounds of its task."""
    import pandas as pd  # here: commands that need no costs import this module too

    cells = read_csv(path, ["task", "method", "seconds"])
    tasks = read_csv(EditionFiles(path.parent).tasks, ["task"], ["rounds"])
    frame = cells.merge(tasks[["task", "rounds"]], on="task")
    frame["seconds"] = pd.to_numeric(frame["seconds"], errors="coerce") / frame["rounds"]
    return list(frame[["task", "method", "seconds"]].dropna().itertuples(index=False, name=None))


@dataclass(frozen=True)
class Estimate:
    """What is left of one experiment, of one model, or of everything.

    Attributes:
        name: of the experiment or the model; `all` of everything.
        title: title of it.
        trials: number of trials; none of a model.
        done: number of trials that have ended, with a result or an error.
        failed: number of those of them that ended with an error.
        cpu_hours, gpu_hours: expected hours of the others, and of training.
        unknown: number of trials, or of models, whose time nobody has measured. The hours are without them.
    """

    name: str
    title: str
    trials: int
    done: int
    failed: int
    cpu_hours: float
    gpu_hours: float
    unknown: int


class _Left(NamedTuple):
    """What is left of a trial: whether it has ended, and with an error, its expected seconds if known, and on what."""

    done: bool
    failed: bool
    seconds: float | None
    gpu: bool


def estimates(run: ResolvedRun, store: Path, data: Path) -> list[Estimate]:
    """Return an estimate for each experiment, each model to be trained, and `all`.

    Experiments may share trials. Each has all of its own; `all` has every trial once.

    Args:
        run: the experiments, with their trials.
        store: folder of all trials.
        data: folder of features and models.
    """
    costly = {name for name, task in run.entries.tasks.items() if task.costly}
    costs = measured_costs(store, costly=costly)
    begun = any(store.glob("*"))  # the keys of the paper preset's 80,000 trials take ten seconds

    def left(spec: TrialSpec) -> _Left:
        done, failed = _ended(TrialFolder(store, trial_key(spec, data))) if begun else (False, False)
        seconds = costs.round_seconds(spec)
        whole = None if seconds is None else seconds * spec.budget.rounds
        return _Left(done, failed, whole, job_resources(run.entries, spec).gpu > 0)

    every: dict[tuple[str, int], _Left] = {}
    found = []
    for name, one in run.experiments.items():
        own = []
        for chunk in one.chunks:
            same = chunk.spec.with_seed(0).model_dump_json()
            for spec in chunk.specs():
                if (same, spec.seed) not in every:
                    every[same, spec.seed] = left(spec)
                own.append(every[same, spec.seed])
        found.append(_summed(name, one.experiment.title, own))
    trials, models = _summed("all", "each trial counted once", every.values()), trainings(run, data)
    everything = replace(
        trials,
        cpu_hours=trials.cpu_hours + sum(model.cpu_hours for model in models),
        gpu_hours=trials.gpu_hours + sum(model.gpu_hours for model in models),
        unknown=trials.unknown + sum(model.unknown for model in models),
    )
    return [*found, *models, everything]


def _summed(name: str, title: str, trials: Collection[_Left]) -> Estimate:
    todo = [one for one in trials if not one.done]
    known = [(one.gpu, one.seconds / 3600) for one in todo if one.seconds is not None]
    return Estimate(
        name,
        title,
        len(trials),
        len(trials) - len(todo),
        sum(one.failed for one in trials),
        sum(hours for gpu, hours in known if not gpu),
        sum(hours for gpu, hours in known if gpu),
        len(todo) - len(known),
    )


def _ended(folder: TrialFolder) -> tuple[bool, bool]:
    """Return whether a trial has ended, and whether with an error.

    One whose results are damaged has not ended, with a warning of one line.
    """
    if not folder.done:
        return False, False
    damaged = folder.changed()
    try:
        if damaged is None:
            return True, folder.failed
    except PlumblineError as error:  # without checksums, of an older version
        damaged = folder.records_path, str(error)
    path, reason = damaged
    warnings.warn(f"{path} is damaged ({reason}): its trial will run again", stacklevel=2)
    return False, False


def trainings(run: ResolvedRun, data: Path) -> list[Estimate]:
    """Return an estimate for each model that experiments of the run read and that is not trained yet."""
    found = []
    for name, model in run.models.items():
        if name in run.inputs and not (data / "models" / f"{name}.npz").is_file():
            hours = {False: 0.0, True: 0.0, model.resources.gpu > 0: model.hours or 0.0}
            found.append(Estimate(name, model.title, 0, 0, 0, hours[False], hours[True], int(model.hours is None)))
    return found
