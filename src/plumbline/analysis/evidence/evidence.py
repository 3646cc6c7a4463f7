"""The evidence of an experiment's figures, tables and claims, read by column."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.analysis.evidence.collect import TRIAL, Name
from plumbline.analysis.evidence.reference import EndSummary, Reference, summary_of
from plumbline.core.errors import PlumblineError
from plumbline.metrics.frames import frame_of
from plumbline.metrics.registry import by_round
from plumbline.store import records
from plumbline.study.experiments import Hyperparameter
from plumbline.study.legends import Legend

PLACE = ["key", *TRIAL, "iteration", "evaluation"]
"""Columns that identify the evaluation of a row; always read."""


@dataclass(frozen=True)
class Evidence:
    """The evidence of an experiment.

    Attributes:
        rows: the evaluations of all trials that ended well; lists of one entry are numbers.
        failures: task, method, seed and error of each trial that did not.
        snapshots: pictures of models, with the trial they belong to.
        illustration: table computed without trials (see `plumbline.illustrations`).
        legends: of the experiment's methods, by label.
        titles: of its tasks.
        task_parameters: numbers in which its tasks differ, by task and name.
        spaces: of hyperparameters, by name: its study's.
        methods_in_use: registered name and options of each method of the YAML files, by label.
        budgets: of all tasks of the YAML files, by name.
        reference: reference results, where they take the place of records: `rows` then has no more than the places.
    """

    rows: pd.DataFrame = field(default_factory=pd.DataFrame)
    failures: pd.DataFrame = field(default_factory=pd.DataFrame)
    snapshots: pd.DataFrame = field(default_factory=pd.DataFrame)
    illustration: pd.DataFrame = field(default_factory=pd.DataFrame)
    legends: Mapping[str, Legend] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    task_parameters: Mapping[str, Mapping[str, float | str]] = field(default_factory=dict)
    spaces: Mapping[str, Sequence[Hyperparameter]] = field(default_factory=dict)
    methods_in_use: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    budgets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reference: Reference | None = None

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return int(self.rows["seed"].nunique()) if len(self.rows) else 0

    @cached_property
    def _places(self) -> dict[tuple[str, str], NDArray[np.intp]]:
        """Where the rows of each task and method are, in the order in which those come."""
        if self.rows.empty:
            return {}
        places: Mapping[Any, Any] = self.rows.groupby(["task", "method"], sort=False, observed=True).indices
        return {(str(task), str(method)): of for (task, method), of in places.items()}

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Every task and method that has trials."""
        return sorted(self._places, key=lambda pair: int(self._places[pair][0]))

    @property
    def tasks(self) -> list[str]:
        """Tasks that have trials, in the order of the grid."""
        return list(dict.fromkeys(task for task, _ in self.pairs))

    def methods(self, task: str | None = None) -> list[str]:
        """Return the methods that have trials, on `task` or on any, in the order of the grid."""
        return list(dict.fromkeys(method for other, method in self.pairs if task in (None, other)))

    def named(self, names: Iterable[str], task: str | None = None) -> list[str]:
        """Return the methods of these names that have trials; the name of an entry stands for all its members."""
        there = self.methods(task)
        return [method for name in names for method in there if name in (method, self.legend(method).entry)]

    def trials(self, task: str, method: str) -> pd.DataFrame:
        """Return the rows of one method on one task.

        Raises:
            PlumblineError: there are none.
        """
        if (task, method) not in self._places:
            known = ", ".join(sorted(f"{task} x {method}" for task, method in self._places))
            raise PlumblineError(f"no trials of {method!r} on {task!r}; there are: {known or 'none'}")
        return self.rows.iloc[self._places[task, method]]

    def by_round(self, task: str, method: str, metric: str) -> pd.DataFrame:
        """Return a metric of one method on one task at the end of each round: one row per seed, a column an iteration.

        Raises:
            PlumblineError: there are no trials.
            NotInReferenceError: there are reference results, and these are not among them.
        """
        if self.reference is not None:
            return self.reference.by_round(task, method, metric)
        return by_round(self.trials(task, method), metric)

    def ends(self, task: str, method: str, metric: str) -> pd.Series:
        """Return the last value of each seed of one method on one task; empty without any.

        Raises:
            PlumblineError: as `by_round`.
        """
        if self.reference is not None and not self.reference.has_rounds(metric):
            return self.reference.ends(task, method, metric)
        table = self.by_round(task, method, metric)
        return table.iloc[:, -1] if table.size else pd.Series(dtype=float)

    def end_summary(self, task: str, method: str, metric: str, level: float | None = None) -> EndSummary:
        """Return where the runs of one method on one task end, with the number of those above a level.

        Raises:
            PlumblineError: as `by_round`.
        """
        if self.reference is not None and not self.reference.has_rounds(metric):
            return self.reference.summary(task, method, metric, level)
        return summary_of(self.ends(task, method, metric), level)

    def legend(self, method: str) -> Legend:
        """Return the legend of a method; one without a legend goes by its label."""
        return self.legends.get(method) or Legend(label=method)

    def title(self, task: str) -> str:
        """Return the title of a task."""
        return self.titles.get(task, task)


def read_rows(path: Path, columns: Iterable[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of trials that ended well, and the failures, of a file of collected records.

    Args:
        path: of the file.
        columns: of the records, besides those of `PLACE`; no other is read.

    Raises:
        PlumblineError: no such file, a corrupt one, or one that lacks a column.
    """
    wanted = list(dict.fromkeys([*PLACE, *columns]))
    if missing := sorted({*wanted, "status", "error"} - set(records.read_names(path))):
        raise PlumblineError(f"{path} has no column {missing[0]!r}: collect the records again")
    table = records.read_table(path, [*wanted, "status", "error"], ["key", "task", "method", "status"])
    rows = frame_of(table)
    failed = rows.loc[rows["status"] == "error", [*TRIAL, "error"]].reset_index(drop=True)
    if len(failed):
        broken = pd.MultiIndex.from_frame(rows[TRIAL]).isin(list(failed[TRIAL].itertuples(index=False, name=None)))
        rows = rows[~broken].reset_index(drop=True)
    return rows.drop(columns=["status", "error"]), failed


def refuse_foreign(found: Evidence, expected: Mapping[Name, int], experiment: str, source: Path) -> None:
    """Raise PlumblineError where records are of other trials than an experiment's grid, or of other lengths.

    Args:
        found: what the records hold.
        expected: task, method and seed of each trial of the grid, with its number of evaluations.
        experiment: its name.
        source: of the records.
    """
    last = found.rows.groupby(TRIAL, sort=False, observed=True)["evaluation"].max().reset_index()
    ended: dict[Name, int] = {
        (str(task), str(method), int(seed)): int(evaluation) + 1
        for task, method, seed, evaluation in zip(*(last[name] for name in [*TRIAL, "evaluation"]), strict=True)
    }
    failed = {
        (str(task), str(method), int(seed))
        for task, method, seed in zip(*(found.failures[name] for name in TRIAL), strict=True)
    }
    again = f"give the records of {experiment} at this preset, or collect them again"
    for name in [*ended, *sorted(failed)]:
        if name not in expected:
            raise PlumblineError(f"{source} holds records of {_words(name)}, not of {experiment}'s grid: {again}")
    for name, evaluations in ended.items():
        if evaluations != expected[name]:
            raise PlumblineError(
                f"{source} holds {evaluations} evaluations of {_words(name)}, {experiment}'s grid has "
                f"{expected[name]}: {again}"
            )
    if missing := sorted(set(expected) - set(ended) - failed):
        raise PlumblineError(
            f"{source} lacks {len(missing)} of {len(expected)} trials of {experiment}'s grid, the first: "
            f"{_words(missing[0])}: {again}"
        )


def _words(name: Name) -> str:
    return "{}/{} seed {}".format(*name)


def evidence(
    path: Path | None, columns: Iterable[str] = (), snapshots: Path | None = None, illustration: Path | None = None
) -> Evidence:
    """Return the evidence in the files of an experiment: records and pictures of its trials, and its illustration.

    Args:
        path: collected records, None for an experiment without trials.
        columns: of the records, that are to be read (see `metrics.registry.columns_of`).
        snapshots: pictures of models.
        illustration: table computed without trials.

    Raises:
        PlumblineError: a file is missing or damaged, the records lack a column, or no snapshot is of these trials, none
            of which failed.
    """
    rows, failed = (pd.DataFrame(), pd.DataFrame()) if path is None else read_rows(path, columns)
    pictures = pd.DataFrame()
    if len(rows) and snapshots is not None and (table := records.read_table(snapshots)).num_rows:
        trials = rows[["key", *TRIAL]].drop_duplicates().astype(dict.fromkeys(("key", "task", "method"), str))
        pictures = table.to_pandas().merge(trials, on="key")
        if pictures.empty and failed.empty:
            raise PlumblineError(f"{snapshots} holds snapshots of other trials than {path}: collect both again")
    shown = pd.DataFrame() if illustration is None else records.read_table(illustration).to_pandas()
    return Evidence(rows, failed, pictures, shown)
