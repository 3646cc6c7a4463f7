"""The runs of trials in the store, by task and method: those of `plumbline trial` and `pb.run` too."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.runs import COLUMNS, runs_of
from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_json
from plumbline.core.options import parse
from plumbline.core.words import counted
from plumbline.metrics.frames import frame_of
from plumbline.metrics.registry import columns_of, metric
from plumbline.registry.references import MethodRef, canonical_json
from plumbline.store import records
from plumbline.store.folder import TrialFolder
from plumbline.store.keys import determinants
from plumbline.store.spec import TrialSpec
from plumbline.study.claims import split_metric


@dataclass(frozen=True)
class Stored:
    """A trial of the store that ended well."""

    folder: TrialFolder
    spec: TrialSpec

    @cached_property
    def parts(self) -> dict[str, Any]:
        """All that the numbers depend on, but for the code; equal options are spelt alike, as far as their classes are
        there."""
        try:
            return dict(determinants(self.spec))
        except PlumblineError:  # of a class or an option that there is no longer
            return self.spec.model_dump(mode="json", exclude={"task"})

    @cached_property
    def settings(self) -> str:
        """All that the trial was asked for, but for its seed."""
        return canonical_json([self.spec.method.label, {**self.parts, "seed": None}])

    @property
    def setting(self) -> str:
        """The problem, the initial design and the batch size: what methods on one task have in common."""
        budget = self.parts["budget"]
        return canonical_json([self.parts["problem"], budget["initial"], budget.get("q")])

    def is_of(self, method: MethodRef) -> bool:
        """Whether the trial's method has this class and these options, or others that mean the same."""
        return (
            self.parts["method"] == Stored(self.folder, self.spec.model_copy(update={"method": method})).parts["method"]
        )

    @cached_property
    def own_code(self) -> dict[str, str]:
        """Digests of the user's own modules that the trial ran with, by name."""
        return dict(self.folder.provenance().get("own_code", {}))


def stored_trials(store: Path, methods: Sequence[str], task: str) -> dict[str, list[Stored]]:
    """Return the trials of methods on a task by method, one a seed.

    Of trials of several settings (rounds, options or data), or of several versions of the user's own code, those that
    ran last count, with a warning that says how many are left out.

    Args:
        store: the folder of all trials.
        methods: their labels.
        task: its name.

    Raises:
        PlumblineError: the trials of two methods are on different problems, from different initial designs, or of
            different versions of a module that both ran with.
    """
    found: dict[str, list[Stored]] = {method: [] for method in methods}
    for one in _ended(store, methods, task):
        found[one.spec.method.label].append(one)
    for method, trials in found.items():
        trials.sort(key=lambda one: one.folder.records_path.stat().st_mtime_ns)
        whose = f"{method} on {task}"
        last = _like_the_last(trials, "settings", whose, "with other rounds, options or data")
        last = _like_the_last(last, "own_code", whose, "of an earlier version of your code")
        found[method] = list({one.spec.seed: one for one in last}.values())
    first: dict[str, str] = {}
    for method, trials in found.items():
        if trials:
            first.setdefault(trials[0].setting, method)
    if len(first) > 1:
        names = " and ".join(map(repr, list(first.values())[:2]))
        raise PlumblineError(
            f"{store}: on {task!r}, {names} have other options of the problem, initial designs or batch "
            "sizes: they cannot be compared"
        )
    refuse_other_code(found, task)
    return found


def _like_the_last(trials: Sequence[Stored], shared: str, whose: str, what: str) -> Sequence[Stored]:
    """Return the trials that share an attribute with the last; warn of others, whose seeds would be mixed in."""
    last = [one for one in trials if getattr(one, shared) == getattr(trials[-1], shared)]
    if others := len({one.spec.seed for one in trials} - {one.spec.seed for one in last}):
        warnings.warn(f"{whose}: {counted(others, 'seed')} {what} left out", stacklevel=3)
    return last


def refuse_other_code(found: Mapping[str, Sequence[Stored]], task: str) -> None:
    """Raise PlumblineError where two methods ran with different versions of a module: of the problem, say."""
    ran: dict[str, tuple[str, str]] = {}
    for method, trials in found.items():
        for module, digest in (trials[-1].own_code if trials else {}).items():
            other, before = ran.setdefault(module, (method, digest))
            if before != digest:
                raise PlumblineError(
                    f"on {task!r}, {other!r} and {method!r} ran with different versions of module {module!r}: run both "
                    "again with the present one"
                )


def _ended(store: Path, methods: Sequence[str], task: str) -> Iterator[Stored]:
    """Yield the trials that ended well; other specs than those asked for are not checked."""
    for path in sorted(store.glob("*/records.parquet")):
        folder = TrialFolder(store, path.parent.name)
        try:
            content = read_json(folder.path / "spec.json", remedy="move the trial's folder away")
        except PlumblineError as error:  # of one trial, which may be of another task: the others are sound
            warnings.warn(f"{error}; the trial is left out", stacklevel=2)
            continue
        at, label = _task_and_label(content)
        if at == task and label in methods and not folder.failed:
            yield Stored(folder, parse(TrialSpec, content, folder.path / "spec.json"))


def _task_and_label(spec: Mapping[str, Any]) -> tuple[str, str]:
    """Return the task and the method's label of a spec that is not checked."""
    method = spec.get("method", {})
    return str(spec.get("task", "")), str(method.get("label") or method.get("name", ""))


def names_in(store: Path) -> set[tuple[str, str]]:
    """Return task and method's label of the trials in a store that ended; those whose spec is damaged are left out."""
    found = set()
    for path in store.glob("*/records.parquet"):
        with suppress(PlumblineError):
            found.add(_task_and_label(read_json(path.parent / "spec.json")))
    return found


def runs_of_store(trials: Sequence[Stored], name: str = "") -> pd.DataFrame:
    """Return the runs of trials on one task.

    Args:
        trials: of any methods.
        name: of a metric, which may be read early (`regret@0.5`); hypervolume, regret or the best value where empty,
            whichever the problem has.

    Raises:
        PlumblineError: an unknown metric, or a share of the rounds that is none.
    """
    wanted = [name] if name else ["hypervolume", "regret", "best_f"]
    metrics = [split_metric(one)[0] for one in wanted]
    keep = [*records.RECORD.names, *records.SECONDS]
    needed = {"key", "task", "method", "seed", "iteration", "evaluation", "roles", "status", *columns_of(metrics)}
    tables = [one.folder.table(one.spec).select([column for column in keep if column in needed]) for one in trials]
    if not tables:
        return pd.DataFrame(columns=COLUMNS)
    rows = frame_of(records.concatenate(tables))
    evidence = Evidence(rows[rows["status"] == "ok"].reset_index(drop=True))
    return runs_of(evidence, [(*pair, name or metric_of(evidence.rows)) for pair in evidence.pairs])


def metric_of(rows: pd.DataFrame) -> str:
    """Return hypervolume for several objectives, else regret where the optimum is known, and the best value if not."""
    roles = list(rows["roles"].iloc[0])
    if sum(role == "objective" for role in roles) > 1:
        return "hypervolume"
    return "regret" if metric(rows, "regret").notna().any() else "best_f"
