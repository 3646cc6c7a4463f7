"""Where runs end: the last value of a metric, or for metrics of single queries its mean over the run."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.analysis.evidence import Evidence
from plumbline.measures import statistics
from plumbline.measures.metrics import by_round, find_metric


def ends(table: pd.DataFrame, metric: str) -> NDArray[np.float64]:
    """Return where each seed ended, or its mean over the rounds that have a value for metrics of single queries.

    Args:
        table: seeds x rounds, as `by_round` gives it.
        metric: what it is of.
    """
    values = table.to_numpy()
    if values.size == 0:
        return np.empty(0)
    return statistics.mean(values, 1) if find_metric(metric).kind == "query" else values[:, -1]


def ended(evidence: Evidence, task: str, method: str, metric: str) -> pd.Series:
    """Return where each seed of a method ended on a task."""
    table = by_round(evidence.trials(task, method), metric)
    return pd.Series(ends(table, metric), index=table.index, dtype=float)
