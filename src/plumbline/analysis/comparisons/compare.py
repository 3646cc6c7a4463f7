"""Two methods of an experiment, seed by seed, on each task that they share."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from plumbline.analysis.evidence.runs import Runs
from plumbline.core.errors import PlumblineError, unknown
from plumbline.statistics.over_seeds import Sample, difference, wins
from plumbline.study.claims import Of


class Comparison(NamedTuple):
    """A paired comparison of a method with a baseline on one task, by one metric.

    Attributes:
        seeds: that have a value of both.
        method, baseline: their means.
        difference, low, high: mean of method minus baseline, and its 95% interval (`docs/verdicts.md`).
        median: of the differences.
        higher: the share of seeds where the method's is the higher value, ties by half.
    """

    task: str
    metric: str
    seeds: int
    method: float
    baseline: float
    difference: float
    low: float
    high: float
    median: float
    higher: float


def comparisons(table: pd.DataFrame, method: str, baseline: str, metric: str = "", of: Of = "last") -> list[Comparison]:
    """Return the comparisons of two methods by each metric, or by one, on each task that both have runs on.

    Args:
        table: of runs (`plumbline.analysis.evidence.runs.COLUMNS`).
        method: that is looked at.
        baseline: what it is compared with.
        metric: the only one; all where none is named.
        of: the number of each run.

    Raises:
        PlumblineError: a method or a metric without runs, or no task that both have runs on.
    """
    for kind, name in (("method", method), ("method", baseline), ("metric", metric)):
        known = sorted(table[kind].unique())
        if name and name not in known:
            raise unknown(kind, name, known)
    found = list(_comparisons(Runs(table), method, baseline, metric, of))
    if not found:
        raise PlumblineError(f"{method!r} and {baseline!r} share no task and metric on which both have values")
    return found


def _comparisons(runs: Runs, method: str, baseline: str, metric: str, of: Of) -> Iterator[Comparison]:
    for task, one, name in runs.tables:
        if one != method or (metric and name != metric) or (task, baseline, name) not in runs.tables:
            continue
        both = pd.concat([runs(task, label, name)[of] for label in (method, baseline)], axis=1).dropna()
        if both.empty:
            continue
        ours, theirs = both.to_numpy(dtype=float).T
        apart = difference([Sample(ours, theirs)], "mean", f"{task} {name} {method} {baseline}")
        means = float(ours.mean()), float(theirs.mean())
        higher = float(wins(ours, theirs).mean())
        yield Comparison(task, name, len(both), *means, apart.value, *apart.interval(), apart.median, higher)


def print_comparisons(found: list[Comparison], method: str, baseline: str) -> None:
    """Print comparisons as a table."""
    table = Table("task", "metric", "seeds", method, baseline, "difference", "95% interval", "median", "higher")
    for column in table.columns[2:]:
        column.justify = "right"
    for one in found:
        interval = f"{one.low:.3g} to {one.high:.3g}" if np.isfinite([one.low, one.high]).all() else "–"
        numbers = (f"{value:.4g}" for value in (one.method, one.baseline, one.difference))
        table.add_row(
            one.task, one.metric, str(one.seeds), *numbers, interval, f"{one.median:.3g}", f"{one.higher:.0%}"
        )
    Console().print(table)
    print(
        "difference: mean over seeds of the first minus the second; higher: seeds where the first is the higher value"
    )
