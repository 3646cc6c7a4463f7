"""How methods rank over all tasks of an experiment."""

import numpy as np
import pandas as pd

from plumbline.analysis.comparisons.ranks import ranked
from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.final_values import final_values, without_full_counts
from plumbline.analysis.outputs.kinds import Names, OutputOptions, tables
from plumbline.statistics import over_seeds as statistics


class RankingOptions(OutputOptions):
    """Options of the table.

    Attributes:
        metric: of the last round, or the mean over the run for metrics of single queries.
        also: further metrics to rank by, for ranks of their own beside; methods that have no value of one, as those
            without a model have no coverage, have no rank by it.
        averages: metrics whose mean over tasks is told beside the ranks; where some seeds have no value on a task, with
            the least number that have.
    """

    metric: str = "regret"
    also: tuple[str, ...] = ()
    averages: tuple[str, ...] = ()

    reads = ("round_seconds",)

    def names(self) -> Names:
        """Return the metrics."""
        return Names(metrics=(self.metric, *self.also, *self.averages))


@tables.register("ranking", RankingOptions)
def ranking(evidence: Evidence, options: RankingOptions) -> pd.DataFrame:
    """Mean rank over tasks and seeds with its 95% interval over seeds, mean rank on each task, and seconds a round.

    Only tasks that all methods ran on count, and on them only seeds that all have; methods with one seed, where others
    have more, are left out. The tasks are what they are: the
    interval says what other seeds would do, not what other problems would. Of further metrics, ranks on single tasks
    are told where they are others than those of the first.

    Raises:
        PlumblineError: there is no such task, or no seed that is on all of them.
    """
    found = ranked(evidence, (options.metric, *options.also))
    first = found.tables[options.metric]
    rows = []
    for method in found.methods:
        row: dict[str, object] = {"method": method, "tasks": len(found.tasks), "seeds": len(found.seeds)}
        for metric in found.tables:
            by = "" if metric == options.metric else f" by {metric}"
            columns = (f"mean rank{by}", f"low{by}", f"high{by}")
            row |= dict(zip(columns, found.overall(metric, method), strict=True))
        for metric in options.averages:
            values = [
                final_values(evidence, task, method, metric).reindex(found.seeds).to_numpy() for task in found.tasks
            ]
            row[metric] = float(np.mean([statistics.mean(of_task, 0) for of_task in values]))
            row[f"{metric} seeds"] = min(int((~np.isnan(of_task)).sum()) for of_task in values)
        seconds = pd.concat([evidence.trials(task, method) for task in found.tasks])
        row["seconds a round"] = seconds.loc[seconds["iteration"] > 0, "round_seconds"].median()
        row |= {f"rank, {task}": found.of_task(options.metric, task, method) for task in found.tasks}
        for metric in options.also:
            others = [task for task, table in found.tables[metric].items() if not table.equals(first[task])]
            row |= {f"rank by {metric}, {task}": found.of_task(metric, task, method) for task in others}
        rows.append(row)
    return without_full_counts(pd.DataFrame(rows), options.averages).sort_values("mean rank", ignore_index=True)
