"""Where each method ended on each task."""

from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, model_validator

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.final_values import final_values_of, summary_columns, without_full_counts
from plumbline.analysis.outputs.kinds import Names, OutputOptions, tables
from plumbline.core.options import Options
from plumbline.metrics.registry import by_round, find_metric
from plumbline.statistics import over_seeds as statistics


class PublishedEnd(Options):
    """Where others' runs ended, read off a figure of theirs.

    Attributes:
        task, method: which of ours it stands beside.
        metric: what it is a value of, in our direction.
        value: theirs.
        error: to either side within which it could be read off.
    """

    task: str
    method: str
    metric: str
    value: float
    error: NonNegativeFloat


class FinalOptions(OutputOptions):
    """Options of the table.

    Attributes:
        metrics: its columns.
        medians: those of them whose median is told beside the mean.
        above: those of them, by a level, of which it is told how many seeds end above: a mean may rest on a few.
        published: values of others, beside ours.
    """

    metrics: tuple[str, ...] = ("regret",)
    medians: tuple[str, ...] = ()
    above: dict[str, float] = Field(default_factory=dict)
    published: tuple[PublishedEnd, ...] = ()

    reads = ("round_seconds",)

    @model_validator(mode="after")
    def _of_its_columns(self) -> Self:
        if strangers := {*self.medians, *self.above, *(one.metric for one in self.published)} - {*self.metrics}:
            raise ValueError(f"{sorted(strangers)} are no columns of the table: {list(self.metrics)} are")
        return self

    def names(self) -> Names:
        """Return the metrics, and what published values stand beside."""
        tasks, methods = (tuple(getattr(one, of) for one in self.published) for of in ("task", "method"))
        return Names(tasks, methods, self.metrics)


def columns_of_metric(values: NDArray[np.float64], metric: str, options: FinalOptions) -> dict[str, object]:
    """Return the columns of one metric with final values `values` (one a seed, or none)."""
    found = summary_columns(values, metric)
    if metric in options.medians:
        found[f"{metric} median"] = float(statistics.median(values, 0)) if len(values) else np.nan
    if metric in options.above:
        found[f"seeds above {options.above[metric]:g}"] = int((values > options.above[metric]).sum())
    return found


def published_columns(task: str, method: str, metric: str, options: FinalOptions) -> dict[str, object]:
    """Return the published value of one metric and its reading error; empty where there is none."""
    return {
        name: value
        for one in options.published
        if (one.task, one.method, one.metric) == (task, method, metric)
        for name, value in ((f"{metric} published", one.value), (f"{metric} published ±", one.error))
    }


def gaps(table: pd.DataFrame, rounds: int) -> str:
    """Return in how many rounds a metric of single queries has a value, averaged over seeds; empty if all or none."""
    there = table.notna().to_numpy()[:, table.columns.to_numpy() > 0]
    known = there.sum() / max(len(table), 1)
    return f"{known:.4g} of {rounds}" if 0 < known < rounds else ""


@tables.register("final-values", FinalOptions)
def final_values(evidence: Evidence, options: FinalOptions) -> pd.DataFrame:
    """Mean and standard error over seeds of each metric at the last round (of the whole run for per-query metrics).

    Where some seeds have no value, it is told how many have.
    """
    rows = []
    for task, method in evidence.pairs:
        trials = evidence.trials(task, method)
        row: dict[str, object] = {"task": task, "method": method, "seeds": trials["seed"].nunique()}
        for metric in options.metrics:
            table = by_round(trials, metric)
            row |= columns_of_metric(final_values_of(table, metric), metric, options) | published_columns(
                task, method, metric, options
            )
            if find_metric(metric).kind == "query":
                row[f"{metric} rounds"] = gaps(table, int(trials["iteration"].max()))
        row["seconds a round"] = trials.loc[trials["iteration"] > 0, "round_seconds"].median()
        rows.append(row)
    frame = without_full_counts(pd.DataFrame(rows), options.metrics)
    # How many rounds have a value is told where some have none.
    whole = [f"{metric} rounds" for metric in options.metrics if f"{metric} rounds" in frame]
    return frame.drop(columns=[name for name in whole if (frame[name] == "").all()])
