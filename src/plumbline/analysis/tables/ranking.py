"""How methods rank over all tasks of an experiment."""

from typing import Literal

import numpy as np
import pandas as pd

from plumbline.analysis.ended import ended, without_full_counts
from plumbline.analysis.evidence import Evidence
from plumbline.analysis.outputs import Names, OutputOptions, tables
from plumbline.errors import PlumblineError
from plumbline.measures import statistics
from plumbline.measures.inference import Mean


class RankingOptions(OutputOptions):
    """Options of the table.

    Attributes:
        metric: of the last round, or the mean over the run for metrics of single queries.
        also: further metrics to rank by, for ranks of their own beside; methods that have no value of one, as those
            without a model recommend nothing, have no rank by it.
        best: whether the least or the greatest value has rank 1.
        averages: metrics whose mean over tasks is told beside the ranks; where some seeds have no value on a task, with
            the least number that have.
    """

    metric: str = "regret"
    also: tuple[str, ...] = ()
    best: Literal["least", "greatest"] = "least"
    averages: tuple[str, ...] = ()

    reads = ("round_seconds",)

    def names(self) -> Names:
        """Return the metrics."""
        return Names(metrics=(self.metric, *self.also, *self.averages))


def ranks(found: dict[str, pd.Series], best: Literal["least", "greatest"]) -> pd.DataFrame:
    """Return the rank of each method for each seed that all of them have; alike values share the mean of their ranks.

    Args:
        found: where each seed ended, by method; one without any value has no rank.
        best: which value has rank 1.

    Returns:
        Seeds x methods.
    """
    table = pd.DataFrame(found).dropna(axis="columns", how="all").dropna()
    return table.rank(axis=1, ascending=best == "least")


def told_of(by_task: dict[str, pd.DataFrame], method: str, seeds: list[int], by: str) -> dict[str, object]:
    """Return a method's mean rank over tasks and some seeds, with its 95% interval; `by` says in words by what.

    NaN of a method that has no rank on all of the tasks.
    """
    if not all(method in table for table in by_task.values()):
        return dict.fromkeys((f"mean rank{by}", f"low{by}", f"high{by}"), np.nan)
    every = pd.concat([table.loc[seeds, method] for table in by_task.values()], keys=by_task)
    found = Mean(every.groupby(level=1).mean().to_numpy(), f"rank of {method}")
    low, high = found.interval()
    return {f"mean rank{by}": found.value, f"low{by}": low, f"high{by}": high}


@tables.register("ranking", RankingOptions)
def ranking(evidence: Evidence, options: RankingOptions) -> pd.DataFrame:
    """Mean rank over tasks and seeds with its 95% interval over seeds, mean rank on each task, and seconds a round.

    Only tasks that all methods ran on count, and on them only seeds that all have. The tasks are what they are: the
    interval says what other seeds would do, not what other problems would. Of further metrics, ranks on single tasks
    are told where they are others than those of the first.

    Raises:
        PlumblineError: there is no such task, or no seed that is on all of them.
    """
    methods = evidence.methods()
    common = [task for task in evidence.tasks if set(evidence.methods(task)) == set(methods)]
    found = {
        metric: {
            task: ranks({method: ended(evidence, task, method, metric) for method in methods}, options.best)
            for task in common
        }
        for metric in (options.metric, *options.also)
    }
    everywhere = [set(table.index) for by_task in found.values() for table in by_task.values()]
    seeds = sorted(set.intersection(*everywhere)) if everywhere else []
    if not seeds:
        raise PlumblineError("no task and seed that all methods have: there is nothing to rank")
    rows = []
    for method in methods:
        row: dict[str, object] = {"method": method, "tasks": len(common), "seeds": len(seeds)}
        for metric, by_task in found.items():
            row |= told_of(by_task, method, seeds, "" if metric == options.metric else f" by {metric}")
        for metric in options.averages:
            values = [ended(evidence, task, method, metric).reindex(seeds).to_numpy() for task in common]
            row[metric] = float(np.mean([statistics.mean(of_task, 0) for of_task in values]))
            row[f"{metric} seeds"] = min(int((~np.isnan(of_task)).sum()) for of_task in values)
        seconds = pd.concat([evidence.trials(task, method) for task in common])
        row["seconds a round"] = seconds.loc[seconds["iteration"] > 0, "round_seconds"].median()
        first = found[options.metric]
        row |= {f"rank, {task}": first[task][method].mean() for task in common}
        for metric in options.also:
            others = {task: table for task, table in found[metric].items() if not table.equals(first[task])}
            row |= {
                f"rank by {metric}, {task}": table[method].mean() for task, table in others.items() if method in table
            }
        rows.append(row)
    return without_full_counts(pd.DataFrame(rows), options.averages).sort_values("mean rank", ignore_index=True)
