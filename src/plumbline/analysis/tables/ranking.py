"""How methods rank over all tasks of an experiment."""

from typing import Literal

import pandas as pd

from plumbline.analysis.ended import ended
from plumbline.analysis.evidence import Evidence
from plumbline.analysis.outputs import Names, OutputOptions, tables
from plumbline.errors import PlumblineError
from plumbline.measures import statistics
from plumbline.measures.inference import Mean


class RankingOptions(OutputOptions):
    """Options of the table.

    Attributes:
        metric: of the last round, or the mean over the run for metrics of single queries.
        best: whether the least or the greatest value has rank 1.
        averages: metrics whose mean over tasks is told beside the ranks.
    """

    metric: str = "regret"
    best: Literal["least", "greatest"] = "least"
    averages: tuple[str, ...] = ()

    reads = ("round_seconds",)

    def names(self) -> Names:
        """Return the metrics."""
        return Names(metrics=(self.metric, *self.averages))


def ranks(found: dict[str, pd.Series], best: Literal["least", "greatest"]) -> pd.DataFrame:
    """Return the rank of each method for each seed that all of them have; alike values share the mean of their ranks.

    Args:
        found: where each seed ended, by method.
        best: which value has rank 1.

    Returns:
        Seeds x methods.
    """
    table = pd.DataFrame(found).dropna()
    return table.rank(axis=1, ascending=best == "least")


@tables.register("ranking", RankingOptions)
def ranking(evidence: Evidence, options: RankingOptions) -> pd.DataFrame:
    """Mean rank over tasks and seeds with its 95% interval over seeds, mean rank on each task, and seconds a round.

    Only tasks that all methods ran on count, and on them only seeds that all have. The tasks are what they are: the
    interval says what other seeds would do, not what other problems would.

    Raises:
        PlumblineError: there is no such task, or no seed that is on all of them.
    """
    methods = evidence.methods()
    common = [task for task in evidence.tasks if set(evidence.methods(task)) == set(methods)]
    by_task = {
        task: ranks({method: ended(evidence, task, method, options.metric) for method in methods}, options.best)
        for task in common
    }
    seeds = set.intersection(*(set(table.index) for table in by_task.values())) if by_task else set()
    if not seeds:
        raise PlumblineError("no task and seed that all methods have: there is nothing to rank")
    every = pd.concat([table.loc[sorted(seeds)] for table in by_task.values()], keys=by_task)
    rows = []
    for method in methods:
        found = Mean(every[method].groupby(level=1).mean().to_numpy(), f"rank of {method}")
        low, high = found.interval()
        row: dict[str, object] = {
            "method": method,
            "tasks": len(common),
            "seeds": len(seeds),
            "mean rank": found.value,
            "low": low,
            "high": high,
        }
        for metric in options.averages:
            values = [statistics.mean(ended(evidence, task, method, metric).to_numpy(), 0) for task in common]
            row[metric] = float(sum(values) / len(values))
        seconds = pd.concat([evidence.trials(task, method) for task in common])
        row["seconds a round"] = seconds.loc[seconds["iteration"] > 0, "round_seconds"].median()
        row |= {f"rank, {task}": by_task[task][method].mean() for task in common}
        rows.append(row)
    return pd.DataFrame(rows).sort_values("mean rank", ignore_index=True)
