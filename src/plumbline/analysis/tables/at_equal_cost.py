"""Results of methods at equal cost, where outcomes have costs of their own."""

import numpy as np
import pandas as pd
from pydantic import Field, PositiveFloat

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.final_values import summary_columns, without_full_counts
from plumbline.analysis.outputs.kinds import Names, OutputOptions, tables
from plumbline.core.options import Options
from plumbline.metrics.spending import by_cost, counts, spent
from plumbline.statistics import over_seeds as statistics


class Comparison(Options):
    """Methods on a task, and what outcomes cost.

    Attributes:
        task: what they ran on.
        methods: which.
        costs: of the outcomes, in their order.
    """

    task: str
    methods: tuple[str, ...] = Field(min_length=1)
    costs: tuple[PositiveFloat, ...] = Field(min_length=1)


class EqualCostOptions(OutputOptions):
    """Options of the table.

    Attributes:
        comparisons: of methods, a group of rows each.
        metrics: its columns.
    """

    comparisons: tuple[Comparison, ...] = Field(min_length=1)
    metrics: tuple[str, ...] = ("log_recommended_regret",)

    reads = ("y",)

    def names(self) -> Names:
        """Return the compared tasks and methods, and the metrics."""
        methods = tuple(method for one in self.comparisons for method in one.methods)
        return Names(tuple(one.task for one in self.comparisons), methods, self.metrics)


def observations(rows: pd.DataFrame, costs: tuple[float, ...], most: float) -> str:
    """Return the mean number of observations of each outcome after the initial design at this cost: `9/4/4`."""
    found = counts(rows)
    affordable = found[found @ np.array(costs) <= most]
    asked = affordable.groupby(level=0).last() - found.groupby(level=0).first()
    return "/".join(f"{times:.3g}" for times in asked.mean())


@tables.register("at-equal-cost", EqualCostOptions)
def at_equal_cost(evidence: Evidence, options: EqualCostOptions) -> pd.DataFrame:
    """Mean, standard error and median of each metric at the greatest cost that every seed of every method reached, and
    how often outcomes were asked for by then; where some seeds have no value, how many have."""
    found = []
    for comparison in options.comparisons:
        methods = evidence.named(comparison.methods, comparison.task)
        trials = {method: evidence.trials(comparison.task, method) for method in methods}
        measured = {
            (method, metric): by_cost(rows, metric, comparison.costs)
            for method, rows in trials.items()
            for metric in options.metrics
        }
        most = min(float(spent(rows, comparison.costs).max(axis=1).min()) for rows in trials.values())
        for method, rows in trials.items():
            row: dict[str, object] = {
                "task": comparison.task,
                "costs": "/".join(f"{cost:g}" for cost in comparison.costs),
                "method": method,
                "seeds": rows["seed"].nunique(),
                "spent": most,
                "asked for": observations(rows, comparison.costs, most),
            }
            for metric in options.metrics:
                table = measured[method, metric]
                last = int(np.searchsorted(table.columns, most, side="right")) - 1
                values = np.full(len(table), np.nan) if table.empty else table.to_numpy()[:, last]
                row |= {**summary_columns(values, metric), f"{metric} median": float(statistics.median(values, 0))}
            found.append(row)
    return without_full_counts(pd.DataFrame(found), options.metrics)
