"""Means over tasks with percentile bootstrap intervals, many at once: for descriptions, not for tests."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.core.seeding import stream_seed
from plumbline.statistics.inference import TAIL

Array = NDArray[np.float64]

RESAMPLES = 2000
"""Of the tasks."""


def drawn_tasks(tasks: int) -> Array:
    """Return how often each task is in each resample: `RESAMPLES x tasks`, the same for all numbers and methods."""
    rng = np.random.default_rng(stream_seed("tasks", tasks, "bootstrap"))
    return rng.multinomial(tasks, np.full(tasks, 1 / tasks), RESAMPLES).astype(float)


def mean_over_tasks(values: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of each row over its tasks with a 95% interval.

    Tasks alone are drawn anew: the spread between means over seeds is part of that between tasks.

    Args:
        values: one column per task, NaN where a row has none.

    Returns:
        With the index of `values`: the number of `tasks`, `mean`, `low` and `high`; no interval of one task.
    """
    numbers = values.to_numpy(dtype=float)
    there = ~np.isnan(numbers)
    drawn = drawn_tasks(numbers.shape[1]).T
    with np.errstate(invalid="ignore"):  # a resample may have none of a row's tasks
        means = np.sort(np.where(there, numbers, 0.0) @ drawn / (there @ drawn), axis=1)
    known = (~np.isnan(means)).sum(axis=1, keepdims=True)
    ends = [np.take_along_axis(means, np.ceil(q * known).astype(int) - 1, axis=1)[:, 0] for q in (TAIL, 1 - TAIL)]
    tasks = there.sum(axis=1)
    low, high = (np.where(tasks > 1, end, np.nan) for end in ends)
    return pd.DataFrame({"tasks": tasks, "mean": values.mean(axis=1), "low": low, "high": high}, index=values.index)
