"""Reference results in place of records: values by round, means by round, final values of runs, and the table.

Experiments keep what there was to keep when they ran: the older ones have means by round, and no single runs by round.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from plumbline.core.errors import PlumblineError
from plumbline.metrics.registry import find_metric
from plumbline.statistics.over_seeds import mean_and_standard_error

WHERE = ["task", "method", "metric"]
"""What a value is of."""


class NotInReferenceError(PlumblineError):
    """Values that a figure needs are not among the reference results."""


class EndSummary(NamedTuple):
    """Where the runs of a method end.

    Attributes:
        mean, error: of the last values, and its standard error.
        seeds: how many have a value.
        median: NaN where it is not kept.
        above: runs that end above a level; None where that is not kept.
    """

    mean: float
    error: float
    seeds: int
    median: float
    above: int | None


def summary_of(ends: pd.Series, level: float | None) -> EndSummary:
    """Return the summary of last values, one a seed; NaN without any."""
    values = ends.dropna().to_numpy(dtype=float)
    if not len(values):
        return EndSummary(np.nan, np.nan, 0, np.nan, None)
    mean, error = mean_and_standard_error(values)
    above = None if level is None else int((values > level).sum())
    return EndSummary(float(mean), float(error), len(values), float(np.median(values)), above)


GAPS = {"mean_nominal_coverage": ("query_coverage", "query_coverage_gap")}
"""Metrics that are as far below another one, in each round, as a gap in the reference results says."""

LAST = ["last"]
"""What is known of these for each run: the median of a difference is not that of medians."""


@dataclass(frozen=True)
class Reference:
    """The reference results of one experiment.

    Attributes:
        rounds: `task, method, metric, seed, iteration, value`.
        curves: `task, method, metric, iteration, mean, standard_error, seeds`.
        runs: as `runs.COLUMNS`.
        table: that of the experiment.
    """

    rounds: pd.DataFrame = field(default_factory=pd.DataFrame)
    curves: pd.DataFrame = field(default_factory=pd.DataFrame)
    runs: pd.DataFrame = field(default_factory=pd.DataFrame)
    table: pd.DataFrame = field(default_factory=pd.DataFrame)

    def has_rounds(self, metric: str) -> bool:
        """Whether values of single runs by round are kept of a metric; they are of all methods or of none."""
        return not self.rounds.empty and metric in self.rounds["metric"].unique()

    def by_round(self, task: str, method: str, metric: str) -> pd.DataFrame:
        """Return a metric at the end of each round: one row per seed, a column an iteration.

        A method without a single value has no columns.

        Raises:
            NotInReferenceError: it is not there.
        """
        if not self.has_rounds(metric):
            raise NotInReferenceError(f"no {metric} by round of single runs of {method} on {task}")
        return _of(self.rounds, task, method, metric).pivot(index="seed", columns="iteration", values="value")

    def curve(self, task: str, method: str, metric: str) -> pd.DataFrame:
        """Return `mean`, `standard_error` and `seeds` by iteration; no rows where a method has no value at all.

        Raises:
            NotInReferenceError: no means by round are kept.
        """
        if self.curves.empty:
            raise NotInReferenceError(f"no {metric} by round of {method} on {task}")
        return _of(self.curves, task, method, metric).set_index("iteration")[["mean", "standard_error", "seeds"]]

    def ends(self, task: str, method: str, metric: str) -> pd.Series:
        """Return the last value of each seed.

        Raises:
            NotInReferenceError: it is not there.
        """
        return self._runs(task, method, metric)["last"]

    def final(self, task: str, method: str, metric: str) -> pd.Series:
        """Return the final value of each seed, of metrics of single queries the mean over rounds.

        Raises:
            NotInReferenceError: it is not there.
        """
        return self._runs(task, method, metric)["mean" if find_metric(metric).kind == "query" else "last"]

    def optimum(self, task: str, method: str) -> float:
        """Return the optimum of a task, which is above the best value by the regret; NaN if it is not kept."""
        regret, best = _of(self.runs, task, method, "regret"), _of(self.curves, task, method, "best_f")
        return np.nan if regret.empty or best.empty else float(best["mean"].iloc[-1] + regret["last"].mean())

    def summary(self, task: str, method: str, metric: str, level: float | None) -> EndSummary:
        """Return where runs end, from single runs or from the table.

        Raises:
            NotInReferenceError: it is in neither.
        """
        if not _of(self.runs, task, method, metric).empty or (metric in GAPS and metric not in self.table):
            return summary_of(self.ends(task, method, metric), level)
        rows = self.table
        rows = rows[(rows["task"] == task) & (rows["method"] == method)] if metric in rows else rows.iloc[:0]
        if rows.empty:
            raise NotInReferenceError(f"no final {metric} of {method} on {task}")
        row = rows.iloc[0]
        above = row.get(f"seeds above {level:g}") if level is not None else None
        seeds = int(row.get(f"{metric} seeds", row["seeds"]))
        median = float(row.get(f"{metric} median", np.nan))
        error = float(row[f"{metric} ±"]) if seeds > 1 else 0.0
        return EndSummary(float(row[metric]), error, seeds, median, None if above is None else int(above))

    def _runs(self, task: str, method: str, metric: str) -> pd.DataFrame:
        found = _of(self.runs, task, method, metric)
        if len(found):
            return found.set_index("seed")
        if metric in GAPS:
            value, gap = (_of(self.runs, task, method, name) for name in GAPS[metric])
            if len(value) and len(gap):
                return (value.set_index("seed")[LAST] - gap.set_index("seed")[LAST]).dropna()
        optimum = self.optimum(task, method) if metric == "best_f" else np.nan
        if np.isnan(optimum):
            raise NotInReferenceError(f"no final {metric} of single runs of {method} on {task}")
        regret = _of(self.runs, task, method, "regret").set_index("seed")
        return optimum - regret[["last", "mean", "median"]]


def _of(table: pd.DataFrame, *of: str) -> pd.DataFrame:
    """Return the rows of a table of one task, method and metric."""
    if table.empty:
        return table
    return table[np.logical_and.reduce([table[name] == value for name, value in zip(WHERE, of, strict=True)])]
