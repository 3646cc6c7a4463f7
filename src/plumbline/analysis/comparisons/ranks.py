"""How methods rank over the tasks of an experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.final_values import final_values
from plumbline.core.errors import PlumblineError
from plumbline.statistics.means import Mean


@dataclass(frozen=True)
class Ranks:
    """Ranks of methods by some metrics.

    Attributes:
        methods: those that are ranked.
        seeds: that all of them have on all tasks: those that count in means over tasks.
        tables: by metric and task, seeds x methods; a method without any value of the metric has no column.
    """

    methods: list[str]
    seeds: list[int]
    tables: Mapping[str, Mapping[str, pd.DataFrame]]

    @property
    def tasks(self) -> list[str]:
        """The tasks that all ranked methods ran on."""
        return list(next(iter(self.tables.values())))

    def of_task(self, metric: str, task: str, method: str) -> float:
        """Return a method's mean rank on a task, NaN of one that has none."""
        table = self.tables[metric][task]
        return float(table[method].mean()) if method in table else np.nan

    def overall(self, metric: str, method: str) -> tuple[float, float, float]:
        """Return a method's mean rank over tasks and seeds, and its 95% interval over seeds; NaN where it has none."""
        tables = self.tables[metric]
        if not all(method in table for table in tables.values()):
            return np.nan, np.nan, np.nan
        every = pd.concat([table.loc[self.seeds, method] for table in tables.values()], keys=tables)
        found = Mean(every.groupby(level=1).mean().to_numpy(), f"rank of {method}")
        return found.value, *found.interval()


def ranks(found: dict[str, pd.Series]) -> pd.DataFrame:
    """Return the ranks of methods, 1 for the least value, for each seed that all of them have; ties share a mean rank.

    Args:
        found: final values of seeds, by method; a method without any value has no rank.

    Returns:
        Seeds x methods.
    """
    table = pd.DataFrame(found).dropna(axis="columns", how="all").dropna()
    return table.rank(axis=1)


def with_one_seed(evidence: Evidence) -> list[str]:
    """Return the methods that have one seed on some task, where most have more.

    They are not ranked: ranks compare methods on the seeds that all of them have, and from one seed nothing can be said
    of others.
    """
    seeds = evidence.rows.groupby(["task", "method"], observed=True)["seed"].nunique()
    few = seeds.groupby("method", observed=True).min() < 2
    return [method for method in evidence.methods() if few[method] and few.mean() < 0.5]


def ranked(evidence: Evidence, metrics: Sequence[str]) -> Ranks:
    """Return the ranks of methods on the tasks that all of them ran on; those `with_one_seed` have none.

    Raises:
        PlumblineError: there is no such task, or no seed that is on all of them.
    """
    left_out = with_one_seed(evidence)
    methods = [method for method in evidence.methods() if method not in left_out]
    common = [task for task in evidence.tasks if set(methods) <= set(evidence.methods(task))]
    tables = {
        metric: {
            task: ranks({method: final_values(evidence, task, method, metric) for method in methods}) for task in common
        }
        for metric in metrics
    }
    everywhere = [set(table.index) for by_task in tables.values() for table in by_task.values()]
    seeds = sorted(set.intersection(*everywhere)) if everywhere else []
    if not seeds:
        raise PlumblineError("no task and seed that all methods have: there is nothing to rank")
    return Ranks(methods, seeds, tables)
