"""Where a method stands among those of the atlas: its mean score and its rank, and differences paired by seed."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.analysis.atlas.over_tasks import drawn_tasks
from plumbline.analysis.comparisons.effects import ALL
from plumbline.statistics.inference import TAIL
from plumbline.statistics.means import Mean
from plumbline.statistics.multiple_tests import holm

Array = NDArray[np.float64]

MEASURED = {"score": "score", "final": "final", "calibration_error": "calibration", "seconds": "seconds"}
"""Columns of trials whose means a standing has, with the headers of these."""


def standing(trials: pd.DataFrame, mine: str) -> pd.DataFrame:
    """Return the methods that have every task that one of them has a score on, the lowest mean score first.

    Only seeds of the latter count (`on_seeds_of`).

    Args:
        trials: as `scores.trials` returns them.
        mine: the method that says which tasks and seeds.

    Returns:
        One row per method, none without such a task: `method`, `rank` by `score` with its 95% interval `rank_low` to
        `rank_high`, and the means of `MEASURED`, first over seeds, then over tasks. Ties share the better rank.
    """
    of_task = (
        on_seeds_of(trials, mine)
        .groupby(["method", "task"], observed=True)[list(MEASURED)]
        .mean()
        .dropna(subset="score")
    )
    tasks = of_task.index[of_task.index.get_level_values("method") == mine].get_level_values("task")
    here = of_task[of_task.index.isin(tasks, level="task")]
    whole = here[here.groupby(level="method")["score"].transform("size") == len(tasks)]
    means = whole.groupby(level="method").mean().sort_values("score", kind="stable")
    low, high = rank_intervals(whole["score"].unstack("task").loc[means.index].to_numpy())
    ranks = means["score"].rank(method="min").astype(int)
    places = pd.DataFrame({"rank": ranks, "rank_low": low, "rank_high": high}, index=means.index)
    return places.join(means).reset_index()


def on_seeds_of(trials: pd.DataFrame, mine: str) -> pd.DataFrame:
    """Return the trials, of all methods, on those tasks and seeds that a method has a score on.

    Means of others are beside its own, and some seeds are easier than others.
    """
    own = trials.loc[(trials["method"] == mine) & trials["score"].notna(), ["task", "seed"]]
    return trials.merge(own, on=["task", "seed"])


def rank_intervals(scores: Array) -> tuple[Array, Array]:
    """Return the ends of the 95% intervals of ranks by mean score: percentiles of a bootstrap over tasks.

    Tasks alone are drawn anew: the spread between means over seeds is part of that between tasks.

    Args:
        scores: of `m` methods on `k` tasks, `m x k`.

    Returns:
        `m` each; NaN where there is one task only.
    """
    methods, tasks = scores.shape
    if tasks < 2:
        return np.full(methods, np.nan), np.full(methods, np.nan)
    means = scores @ drawn_tasks(tasks).T
    ranks = 1 + (means[:, None] > means[None]).sum(axis=1)
    low, high = np.quantile(ranks, [TAIL, 1 - TAIL], axis=1, method="inverted_cdf")
    return low, high


class Difference(NamedTuple):
    """A mean difference of scores, one's own minus another method's: below zero, one's own is better.

    Attributes:
        against: the other method.
        task: of it, or `ALL`: the mean over tasks, each of which counts once.
        pairs: seeds that both have on the task; over all tasks, the number of tasks.
        difference, low, high: the mean and its 95% interval, over seeds or over tasks; NaN where fewer than two.
        p: two-sided, of no difference.
        p_corrected: by Holm's method over all other methods, of the means over tasks; NaN of a task.
    """

    against: str
    task: str
    pairs: int
    difference: float
    low: float
    high: float
    p: float
    p_corrected: float = np.nan


def paired_differences(trials: pd.DataFrame, mine: str, against: Sequence[str]) -> list[Difference]:
    """Return the differences of scores from each other method: over all tasks, then a task each.

    Args:
        trials: as `scores.trials` returns them.
        mine: one's own method.
        against: the others.
    """
    known = trials.dropna(subset="score")
    index = ["task", "seed"]
    scores = known.pivot_table(index=index, columns="method", values="score", observed=True, sort=False)
    scores = scores.reindex(columns=[mine, *against])
    over, of_tasks = [], []
    for other in against:
        by_task = (scores[mine] - scores[other]).dropna().groupby(level="task", sort=False)
        over.append(_difference(by_task.mean(), mine, other, ALL))
        of_tasks.append([_difference(values, mine, other, str(task)) for task, values in by_task])
    corrected = holm([1.0 if np.isnan(one.p) else one.p for one in over])
    over = [one._replace(p_corrected=one.p if np.isnan(one.p) else p) for one, p in zip(over, corrected, strict=True)]
    return [one for mean, rows in zip(over, of_tasks, strict=True) for one in (mean, *rows) if one.pairs]


def _difference(values: pd.Series, mine: str, other: str, task: str) -> Difference:
    """Return the mean of differences. Resamples go by the pair of methods, whichever of them is one's own."""
    if len(values) < 2:
        return Difference(other, task, len(values), float(values.mean()), low=np.nan, high=np.nan, p=np.nan)
    mean = Mean(values.to_numpy(dtype=float), " ".join([task, *sorted([mine, other])]))
    return Difference(other, task, len(values), mean.value, *mean.interval(), mean.p_two_sided())
