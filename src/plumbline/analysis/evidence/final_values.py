"""Final values of runs: the last value of a metric, or for metrics of single queries the mean over the run.

Some metrics have no value in some runs, such as the best value of a run without a feasible point. Means are then over
the other runs, and tables give their number.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.metrics.registry import find_metric
from plumbline.metrics.summaries import summaries
from plumbline.statistics import over_seeds as statistics


def final_values_of(table: pd.DataFrame, metric: str) -> NDArray[np.float64]:
    """Return the final value of each seed, or for metrics of single queries their mean over the rounds: `n`.

    Args:
        table: seeds x rounds, as `by_round` returns it.
        metric: its name.
    """
    if table.empty:
        return np.empty(0)
    return summaries(table)["mean" if find_metric(metric).kind == "query" else "last"].to_numpy(dtype=float)


def final_values(evidence: Evidence, task: str, method: str, metric: str) -> pd.Series:
    """Return the final value of each seed of a method on a task; all NaN where no round has a value."""
    if evidence.reference is not None and not evidence.reference.has_rounds(metric):
        return evidence.reference.final(task, method, metric)
    table = evidence.by_round(task, method, metric)
    return pd.Series(np.nan if table.empty else final_values_of(table, metric), index=table.index, dtype=float)


def summary_columns(values: NDArray[np.float64], metric: str) -> dict[str, object]:
    """Return the columns of `n` final values: mean, standard error, and the number of seeds that have a value.

    There is no standard error of one seed: NaN.
    """
    mean, error = statistics.mean_and_standard_error(values) if len(values) else (np.nan, np.nan)
    seeds = int((~np.isnan(values)).sum())
    return {
        metric: float(mean),
        f"{metric} ±": statistics.known_error(float(error), seeds),
        f"{metric} seeds": seeds,
    }


def with_words_for_one_seed(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table that says "one seed" in place of a standard error of one seed, which is 0 in older tables."""
    shown = table.copy()
    for column in (name for name in map(str, table) if name.endswith(" ±") and "seeds" in table):
        metric = column.removesuffix(" ±")
        # A published value has an error of reading, whatever the number of our seeds.
        if not metric.endswith(" published"):
            alone = table.get(f"{metric} seeds", table["seeds"]) == 1
            shown[column] = table[column].astype(object).mask(alone, "one seed") if alone.any() else table[column]
    return shown


def without_full_counts(table: pd.DataFrame, metrics: Iterable[str]) -> pd.DataFrame:
    """Return a table without the counts of seeds that no row needs: there each method has a value of all or of none."""
    counts = [name for metric in metrics if (name := f"{metric} seeds") in table]
    needless = [name for name in counts if (table[name].eq(table["seeds"]) | table[name].eq(0)).all()]
    return table.drop(columns=needless)
