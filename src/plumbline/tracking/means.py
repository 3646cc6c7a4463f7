"""Mean curves over the seeds of a method on a task, with their intervals."""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from plumbline.metrics.registry import find_metric
from plumbline.statistics.over_seeds import mean_interval

LEVEL = 0.95
"""Of Student's intervals."""


def mean_curves(metrics: Mapping[str, pd.DataFrame], names: Collection[str]) -> dict[str, pd.DataFrame]:
    """Return the mean of each metric in each round, with the ends of its 95% interval.

    A value that is of all evaluations so far stands until there is another, as in figures; any other is averaged over
    the seeds that have it.

    Args:
        metrics: by name, `seeds x rounds`, NaN where there is no value.
        names: of the metrics whose means are wanted; those that there are not are left out.

    Returns:
        One row per round with the columns `low`, `mean` and `high`; the ends are NaN where one seed alone has a value.
    """
    found = {}
    for name in (name for name in names if name in metrics):
        table = metrics[name].ffill(axis="columns") if find_metric(name).kind == "running" else metrics[name]
        table = table.dropna(axis="columns", how="all")
        low, mean, high = mean_interval(table.to_numpy(), LEVEL)
        several = table.count().to_numpy() > 1
        ends = {"low": np.where(several, low, np.nan), "mean": mean, "high": np.where(several, high, np.nan)}
        found[name] = pd.DataFrame(ends, index=table.columns)
    return found
