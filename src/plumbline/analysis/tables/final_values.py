"""Where each method ended on each problem."""

from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, model_validator

from plumbline.analysis.collect import Evidence
from plumbline.analysis.metrics import PER_QUERY, by_round
from plumbline.analysis.outputs import tables
from plumbline.analysis.statistics import mean_and_standard_error
from plumbline.options import Options
from plumbline.study import Study


class FinalOptions(Options):
    """Options of the table.

    Attributes:
        metrics: its columns.
        medians: those of them whose median is told beside the mean.
        above: those of them, by a level, of which it is told how many seeds end above: a mean may rest on a few.
    """

    metrics: tuple[str, ...] = ("regret",)
    medians: tuple[str, ...] = ()
    above: dict[str, float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _of_its_columns(self) -> Self:
        if strangers := {*self.medians, *self.above} - {*self.metrics}:
            raise ValueError(f"{sorted(strangers)} are no columns of the table: {list(self.metrics)} are")
        return self


def column(values: NDArray[np.float64], metric: str, options: FinalOptions) -> dict[str, float]:
    """Return what is told of one metric, whose values at the end are `values` (one a seed, or none)."""
    mean, error = mean_and_standard_error(values) if len(values) else (np.nan, np.nan)
    told = {metric: float(mean), f"{metric} ±": float(error)}
    if metric in options.medians:
        told[f"{metric} median"] = float(np.median(values)) if len(values) else np.nan
    if metric in options.above:
        told[f"seeds above {options.above[metric]:g}"] = int((values > options.above[metric]).sum())
    return told


@tables.register("final-values", FinalOptions)
def final_values(evidence: Evidence, options: FinalOptions, study: Study) -> pd.DataFrame:
    """Mean and standard error over seeds of each metric at the last round (of the whole run for per-query metrics)."""
    rows = []
    for (problem, method), trials in evidence.rows.groupby(["problem", "method"], sort=False):
        row: dict[str, object] = {"problem": problem, "method": method, "seeds": trials["seed"].nunique()}
        for metric in options.metrics:
            table = by_round(trials, metric).to_numpy()
            ends = np.empty(0) if table.size == 0 else table.mean(axis=1) if metric in PER_QUERY else table[:, -1]
            row |= column(ends, metric, options)
        row["seconds a round"] = trials.loc[trials["iteration"] > 0, "round_seconds"].median()
        rows.append(row)
    return pd.DataFrame(rows)
