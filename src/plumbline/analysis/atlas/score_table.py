"""The scores of one's own method and of others on each task, beside their differences, as a LaTeX table."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from plumbline.analysis.atlas.standing import Difference, on_seeds_of, paired_differences
from plumbline.analysis.comparisons.compare import LEVEL
from plumbline.analysis.comparisons.effects import ALL
from plumbline.analysis.comparisons.latex import escaped, floating_table
from plumbline.core.words import counted
from plumbline.statistics.means import Mean
from plumbline.statistics.multiple_tests import holm
from plumbline.study.legends import Legend

HEADERS = ["method", "seeds", "mean, 95\\% interval", "difference, 95\\% interval", "$p$", "Holm"]


def score_table(
    trials: pd.DataFrame,
    mine: str,
    differences: Sequence[Difference],
    titles: Mapping[str, str] | None = None,
    legends: Mapping[str, Legend] | None = None,
) -> str:
    """Return the table, for the package booktabs: all tasks first, then one block per task.

    Args:
        trials: as `scores.trials` returns them.
        mine: one's own method, on whose tasks and seeds the others are, as in its standing.
        differences: as `standing.paired_differences` returns them.
        titles: of tasks; one without a title goes by its name.
        legends: of the other methods; one without a legend goes by its name.
    """
    titles, legends = titles or {}, legends or {}
    methods = [mine, *dict.fromkeys(one.against for one in differences)]
    known = on_seeds_of(trials, mine).dropna(subset="score")
    known = known[known["method"].isin(methods)]
    tasks = [ALL, *dict.fromkeys(known["task"].astype(str))]
    blocks = {}
    for task in tasks:
        rows = block(known, task, methods, differences)
        rows["method"] = [legends[name].label if name in legends else name for name in rows["method"]]
        blocks[f"score on {titles.get(task, task)} (lower is better)"] = rows
    return floating_table(HEADERS, blocks, caption(mine, len(methods) - 1))


def caption(mine: str, others: int) -> str:
    """Return what the reader has to know of the numbers, in LaTeX."""
    return (
        f"Mean score, and its difference, {escaped(mine)} minus the other method, paired by seed: below 0 "
        f"{escaped(mine)} is better. Over all tasks, the sample is the tasks' means, and the number is that of tasks. "
        f"$p$: two-sided, of one comparison; Holm: corrected for {counted(others, 'method')}. Bold: the lowest mean "
        "and those that do not differ significantly from it (level .05, paired test, Holm's correction)."
    )


def block(known: pd.DataFrame, task: str, methods: Sequence[str], differences: Sequence[Difference]) -> pd.DataFrame:
    """Return the rows of a task, or of all of them, as `floating_table` takes them."""
    values = {name: values_of(known, task, name) for name in methods}
    apart = {one.against: one for one in differences if one.task == task}
    best = set(among_best(known, task, values))
    rows = []
    for name in methods:
        one = apart.get(name, Difference(name, task, 0, *[np.nan] * 4))
        row = {"method": name, "seeds": len(values[name]), **estimate(values[name], f"{task} {name}")}
        row |= {"difference": one.difference, "difference_low": one.low, "difference_high": one.high}
        rows.append({**row, "p": one.p, "p_corrected": one.p_corrected, "among_best": name in best})
    return pd.DataFrame(rows)


def values_of(known: pd.DataFrame, task: str, method: str) -> pd.Series:
    """Return the scores of a method's seeds on a task; over all tasks the mean of each."""
    of = known[known["method"] == method]
    return of.groupby("task", observed=True)["score"].mean() if task == ALL else of.loc[of["task"] == task, "score"]


def estimate(values: pd.Series, name: str) -> dict[str, float]:
    """Return the mean with its 95% interval; NaN of fewer than two values."""
    if len(values) < 2:
        return {"value": float(values.mean()), "low": np.nan, "high": np.nan}
    mean = Mean(values.to_numpy(dtype=float), name)
    return dict(zip(("value", "low", "high"), (mean.value, *mean.interval()), strict=True))


def among_best(known: pd.DataFrame, task: str, values: dict[str, pd.Series]) -> Iterator[str]:
    """Yield the method with the lowest mean, and those that do not differ from it significantly.

    Nothing, where that mean is of one value and cannot be tested.
    The test is that of `paired_differences`, on the pairs of each other method with the best one.
    """
    means = {name: float(of.mean()) for name, of in values.items() if len(of)}
    best = min(means, key=lambda name: means[name], default="")
    if not best or len(values[best]) < 2:
        return
    yield best
    others = [name for name in values if name != best]
    tested = [one for one in paired_differences(known, best, others) if one.task == task and np.isfinite(one.p)]
    for one, p in zip(tested, holm([one.p for one in tested]), strict=True):
        if p > LEVEL:
            yield one.against
