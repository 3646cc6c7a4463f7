"""The metrics of trials: one registry of what figures, tables, claims, reference results and MLflow speak of.

A metric computes itself from rows of one method on one task: trials with different seeds, each in the order of its
evaluations. It reads the columns of the records that it names and no others, and none of them loads torch.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.core.errors import unknown
from plumbline.metrics.frames import lookup

Array = NDArray[np.float64]
Kind = Literal["query", "running", "round"]
Better = Literal["higher", "lower", ""]


@dataclass(frozen=True)
class Metric:
    """What is known of a metric.

    Attributes:
        name: what YAML and tables call it.
        summary: one line.
        columns: of the records, that it reads besides those that say which evaluation a row is.
        kind: `query`, of a single evaluation, averaged over a round; `running`, of all so far, the last of a round,
            which stands until there is another; `round`, of a whole round.
        compute: rows to one value per row, NaN where it is not defined.
        streamed: whether MLflow gets it.
        better: which direction is better, empty where neither is: coverage has a level to meet.
        best: the best value there can be, where that is known beforehand.
    """

    name: str
    summary: str
    columns: tuple[str, ...]
    kind: Kind
    compute: Callable[[pd.DataFrame], Array | pd.Series]
    streamed: bool = False
    better: Better = ""
    best: float | None = None


METRICS: dict[str, Metric] = {}
"""Every metric by name, notes excepted."""

NOTE = "notes."
"""`notes.effective_sample_size` is the metric of a number that a method noted; a problem's are `notes.problem.*`."""


def enter(
    kind: Kind, *reads: str, streamed: bool = False, better: Better = "", best: float | None = None
) -> Callable[[Callable[[pd.DataFrame], Array | pd.Series]], Callable[[pd.DataFrame], Array | pd.Series]]:
    """Register the decorated function; `reads` names columns, or other metrics whose columns it needs."""

    def enter(compute: Callable[[pd.DataFrame], Array | pd.Series]) -> Callable[[pd.DataFrame], Array | pd.Series]:
        nested = (METRICS[name].columns if name in METRICS else (name,) for name in reads)
        columns = tuple(dict.fromkeys(column for names in nested for column in names))
        summary = (compute.__doc__ or "").strip().splitlines()[0].removeprefix("Return ").rstrip(".")
        name = compute.__name__
        METRICS[name] = Metric(name, summary, columns, kind, compute, streamed, better, best)
        return compute

    return enter


def find_metric(name: str) -> Metric:
    """Return a metric by name.

    Raises:
        PlumblineError: there is none, with the nearest name.
    """
    if name in METRICS:
        return METRICS[name]
    note = name.removeprefix(NOTE)
    if name.startswith(NOTE) and note:
        summary = f"{note}, as it was noted"
        return Metric(name, summary, ("notes",), "round", lambda rows: lookup(rows["notes"], note), streamed=True)
    raise unknown("metric", name, METRICS, "plumbline classes metric")


def check_metric(name: str) -> None:
    """Raise PlumblineError with the nearest name if there is no such metric."""
    find_metric(name)


def columns_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of the records that metrics read; raise PlumblineError for one that there is not."""
    return tuple(dict.fromkeys(column for name in names for column in find_metric(name).columns))


def metric(rows: pd.DataFrame, name: str) -> pd.Series:
    """Return a metric of every row, NaN where it is not defined.

    Args:
        rows: of one method on one task, each trial in the order of its evaluations.
        name: of the metric.

    Raises:
        PlumblineError: unknown metric.
    """
    found = find_metric(name).compute(rows)
    if isinstance(found, pd.Series):
        return found.reindex(rows.index)
    return pd.Series(found, index=rows.index)


def by_round(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a metric at the end of each round.

    Returns:
        One row a seed, one column an iteration; rounds without a value are left out. NaN where single trials lack one.
    """
    table = as_recorded(rows, name).dropna(axis="columns", how="all")
    return table.ffill(axis="columns") if find_metric(name).kind == "running" else table


def as_recorded(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a metric at the end of each round as `by_round` does, but with nothing left out or carried on.

    A row is what its trial alone would have.
    """
    groups = metric(rows, name).groupby([rows["seed"], rows["iteration"]])
    return (groups.mean() if find_metric(name).kind == "query" else groups.last()).unstack()


def of_trials(rows: pd.DataFrame, running: Callable[..., Array], *values: Array) -> Array:
    """Return `running` of the values of each trial, put back in place."""
    found = np.full(len(rows), np.nan)
    for places in rows.groupby("seed", sort=False).indices.values():
        found[places] = running(*(value[places] for value in values))
    return found


def queries(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of queries, without those of the initial design."""
    return rows[rows["iteration"] > 0]


def running_mean(values: pd.Series, rows: pd.DataFrame) -> pd.Series:
    """Return the mean of the values so far of each trial."""
    return values.groupby(rows["seed"]).transform(lambda column: column.expanding().mean())
