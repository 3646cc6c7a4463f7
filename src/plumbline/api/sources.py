"""Where the runs of methods on a task are: the store, the results of a preset, the reference results or the atlas."""

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from plumbline.api.arguments import option_named
from plumbline.api.experiment_runs import edition_with, runs_by_column
from plumbline.api.repository import find_repository
from plumbline.api.running import is_problem
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.files import read_csv
from plumbline.core.places import ATLAS, REFERENCE, STORE, own, own_or_shipped, reference_folders
from plumbline.registry.catalogue import catalogue
from plumbline.study.methods_and_tasks import MethodsAndTasks, load_methods_and_tasks

if TYPE_CHECKING:
    import pandas as pd

    from plumbline.analysis.evidence.stored import Stored


class Source(NamedTuple):
    """Runs, and where they are from, in words."""

    runs: "pd.DataFrame"
    words: str


class Place(NamedTuple):
    """Where runs are looked for.

    Attributes:
        experiment: its name; any that has them where empty.
        folder: results of a preset; the reference results where None.
        store: the only store to look into; that of the workspace and then the reference results where None.
    """

    experiment: str = ""
    folder: Path | None = None
    store: Path | None = None


def find_runs(methods: Sequence[str], task: str, metric: str, place: Place) -> Source:
    """Return runs of all these methods.

    Args:
        methods: their labels.
        task: its name; empty for all tasks of an experiment.
        metric: the only one; empty for all that the source has.
        place: where to look.

    Raises:
        PlumblineError: no runs of all of them there, or those of several experiments.
    """
    if place.store and (place.experiment or place.folder):
        raise PlumblineError("store: its trials are of no experiment: leave out experiment and folder")
    if not task and not place.experiment:
        raise PlumblineError("no task: name one, or an experiment, whose tasks are all looked at")
    if place.experiment or place.folder:
        experiment = place.experiment or _one_of(records_in(place.folder or Path()), methods, task)
        if place.folder is None:
            return _reference_source(experiment, methods, metric)
        return Source(runs_by_column(experiment, place.folder, metric), f"{experiment} in {place.folder}")
    stored = _stored(methods, task, metric, place.store)
    if isinstance(stored, Source):
        return stored
    experiment = _one_of(ReferenceResults(), methods, task, lacking=stored)
    return _reference_source(experiment, methods, metric)


def _reference_source(experiment: str, methods: Sequence[str], metric: str) -> Source:
    """Return the reference runs of an experiment; its words name methods whose definition has changed since."""
    from plumbline.analysis.evidence.former import former_in_words

    found = runs_by_column(experiment, None, metric)
    if edition_with(experiment) is not None:
        return Source(found, f"{experiment} in {ATLAS}")
    former = former_in_words(own_or_shipped(REFERENCE / experiment), methods)
    return Source(found, f"{experiment} in {REFERENCE}" + f" ({former})" * bool(former))


def _stored(methods: Sequence[str], task: str, metric: str, store: Path | None) -> Source | list[str]:
    """Return the runs of a store, or of that of the workspace; where the latter lacks methods, these."""
    from plumbline.analysis.evidence.stored import runs_of_store, stored_trials

    folder = store or own(STORE)
    if store and not store.is_dir():
        raise PlumblineError(f"no folder of trials at {store}: `plumbline trial --store {store}` makes it")
    trials = stored_trials(folder, methods, task)
    missing = [method for method, found in trials.items() if not found]
    if missing and store:
        raise _lacking(store, missing[0], task)
    if missing:
        return missing
    _warn_of_former({method: found[-1] for method, found in trials.items()}, task)
    runs = runs_of_store([one for found in trials.values() for one in found], metric)
    return Source(runs, f"trials in {store or STORE}")


def _warn_of_former(trials: Mapping[str, "Stored"], task: str) -> None:
    """Warn of trials with the name of a method of the configuration, which has another class or other options now."""
    entries = load_methods_and_tasks(find_repository() / "config").methods
    for method, one in trials.items():
        if method in entries and not one.is_of(entries[method].ref):
            words = f"its trials are not of the present {method!r} of config/methods, which has other options"
            warnings.warn(f"{method} on {task}: {words}", stacklevel=4)


def _lacking(store: Path, method: str, task: str) -> PlumblineError:
    """Return the error for a store that has no trials of a method on a task, with the nearest name that it has."""
    from plumbline.analysis.evidence.stored import names_in

    there = names_in(store)
    on_task = {label for at, label in there if at == task}
    if there and not on_task:
        return unknown("task", task, {at for at, _ in there}, are=f"tasks have trials in {store}")
    others = f"; of others it has: {', '.join(sorted(on_task - {method}))}" if on_task - {method} else ""
    return PlumblineError(f"{store} has no trials of {method!r} on {task!r} that ended well{others}")


class Records:
    """The records in the results of a preset, a file an experiment."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise PlumblineError(f"no folder of results at {folder}: name results/<preset> of a run, or an atlas")
        self.folder = folder

    @property
    def words(self) -> str:
        """Where the runs are, in words."""
        return f"in {self.folder}"

    @cached_property
    def index(self) -> "pd.DataFrame":
        """Experiment, task and method of the runs."""
        return _index({path.stem: path for path in sorted(self.folder.glob("records/*.parquet"))})

    def only_means(self, methods: Sequence[str], task: str) -> list[str]:
        """Return the experiments of which only means over seeds are there; none."""
        return []


class Edition(Records):
    """An edition of the atlas, a track an experiment."""

    @cached_property
    def index(self) -> "pd.DataFrame":
        """Experiment, task and method of the runs."""
        from plumbline.analysis.atlas.runs import index

        return index(self.folder)


class ReferenceResults(Records):
    """The reference results, a folder an experiment, and the atlas."""

    def __init__(self) -> None:
        self.folders = reference_folders()

    @property
    def words(self) -> str:
        """Where the runs are, in words."""
        return "of the reference results"

    @cached_property
    def index(self) -> "pd.DataFrame":
        """Experiment, task and method of the runs."""
        import pandas as pd

        from plumbline.analysis.atlas.edition import is_edition

        runs = {name: folder / f"{name}-runs.parquet" for name, folder in self.folders.items()}
        found = _index({name: path for name, path in runs.items() if path.is_file()})
        atlas = own_or_shipped(ATLAS)
        return pd.concat([found, Edition(atlas).index], ignore_index=True) if is_edition(atlas) else found

    def only_means(self, methods: Sequence[str], task: str) -> list[str]:
        """Return the experiments of which the reference results have means of all these methods and no single runs."""
        found = []
        for name, folder in self.folders.items():
            path = folder / f"{name}-table.csv"
            if path.is_file() and not (folder / f"{name}-runs.parquet").is_file():
                table = read_csv(path)
                if {"task", "method"} <= set(table) and set(methods) <= set(table["method"][table["task"] == task]):
                    found.append(name)
        return found


def records_in(folder: Path) -> Records:
    """Return what is in a folder: an edition of the atlas, or results of a preset.

    Raises:
        PlumblineError: there is neither.
    """
    from plumbline.analysis.atlas.edition import is_edition

    if is_edition(folder):
        return Edition(folder)
    found = Records(folder)
    if found.index.empty:
        raise PlumblineError(f"no runs in {folder}: it has no records of experiments, and is no atlas")
    return found


def _index(files: dict[str, Path]) -> "pd.DataFrame":
    import pandas as pd

    from plumbline.store.records import read_table

    columns = ["task", "method"]
    frames = [
        read_table(path, columns).group_by(columns).aggregate([]).to_pandas().assign(experiment=name)
        for name, path in files.items()
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=[*columns, "experiment"])


def _one_of(records: Records, methods: Sequence[str], task: str, lacking: Sequence[str] = ()) -> str:
    """Return the one experiment that has runs of all these methods on a task.

    Args:
        records: where to look.
        methods: their labels.
        task: its name; empty for any.
        lacking: the methods without runs in the workspace's own store, for the error, which knows what it has.

    Raises:
        PlumblineError: no experiment has them, or several have.
    """
    index = records.index
    here = index[index["task"] == task] if task else index
    having = here[here["method"].isin(methods)].groupby(["experiment", "task"])["method"].nunique() == len(set(methods))
    found = sorted({str(experiment) for experiment, _ in having[having].index})
    if len(found) == 1:
        return found[0]
    names = ", ".join(methods)
    if found:
        raise PlumblineError(
            f"{names}: runs on {task!r} are in {', '.join(found)}: name one of them by {option_named('experiment')}"
        )
    if means := records.only_means(methods, task):
        raise PlumblineError(
            f"{names}: the reference results have means on {task!r} ({', '.join(means)}), but no single runs: run them"
        )
    entries = load_methods_and_tasks(find_repository() / "config")
    stored = _names_in_own_store() if lacking else set()
    of_store = {at for at, _ in stored}
    if here.empty and task not in {*entries.tasks, *of_store}:
        raise unknown("task", task, {*map(str, index["task"].unique()), *of_store}, are="tasks have runs here")
    run = {*map(str, here["method"]), *(label for at, label in stored if at == task)}
    known = {*run, *entries.methods, *(label for _, label in stored)}
    for method in methods:
        if method not in known and not catalogue().has("method", method):
            raise unknown("method", method, run or entries.methods, are="methods have runs on it" if run else "methods")
    own_store = f", and {STORE} lacks {', '.join(lacking)}" if lacking else ""
    command = _command((lacking or methods)[0], task, entries)
    raise PlumblineError(f"no experiment {records.words} has runs of {names} on {task!r}{own_store}{command}")


def _names_in_own_store() -> set[tuple[str, str]]:
    """Return task and method's label of the trials in the workspace's own store."""
    from plumbline.analysis.evidence.stored import names_in

    return names_in(own(STORE))


def _command(method: str, task: str, entries: MethodsAndTasks) -> str:
    """Return, behind a colon, the command that runs a seed; empty where a name is of a method or task without one."""
    who = f"--method {method}" if method in entries.methods else f"--class {method}"
    where = f"--task {task}" if task in entries.tasks else f"--problem {task}"
    known = method in entries.methods or catalogue().has("method", method), task in entries.tasks or is_problem(task)
    return f": `plumbline trial {who} {where}` runs a seed" if all(known) else ""
