"""Where each method ended on each problem."""

import numpy as np
import pandas as pd

from plumbline.analysis.collect import Evidence
from plumbline.analysis.metrics import PER_QUERY, by_round
from plumbline.analysis.outputs import tables
from plumbline.analysis.statistics import mean_and_standard_error
from plumbline.options import Options
from plumbline.study import Study


class FinalOptions(Options):
    """Options of the table: the metrics that are its columns."""

    metrics: tuple[str, ...] = ("regret",)


@tables.register("final-values", FinalOptions)
def final_values(evidence: Evidence, options: FinalOptions, study: Study) -> pd.DataFrame:
    """Mean and standard error over seeds of each metric at the last round (of the whole run for per-query metrics)."""
    rows = []
    for (problem, method), trials in evidence.rows.groupby(["problem", "method"], sort=False):
        row: dict[str, object] = {"problem": problem, "method": method, "seeds": trials["seed"].nunique()}
        for metric in options.metrics:
            table = by_round(trials, metric).to_numpy()
            if table.size == 0:
                row |= {metric: np.nan, f"{metric} ±": np.nan}
                continue
            mean, error = mean_and_standard_error(table.mean(axis=1) if metric in PER_QUERY else table[:, -1])
            row |= {metric: float(mean), f"{metric} ±": float(error)}
        row["seconds a round"] = trials.loc[trials["iteration"] > 0, "round_seconds"].median()
        rows.append(row)
    return pd.DataFrame(rows)
