"""Cumulative regret and coverage of tabular ranking: CBO, figures 8 and 13."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.analysis import style
from plumbline.analysis.collect import Evidence
from plumbline.analysis.metrics import by_round
from plumbline.analysis.outputs import figures
from plumbline.options import Options

ROWS = (
    ("cumulative_regret", "cumulative regret", None),
    ("holdout_coverage", "holdout coverage", "nominal_coverage"),
    ("query_coverage", "query coverage", "mean_nominal_coverage"),
)
"""Metric, its axis, and the metric that says what it should be."""


class RankingOptions(Options):
    """Options of the figure."""

    quantiles: tuple[float, float] = (0.2, 0.8)


def draw_quantiles(
    ax: Axes, table: np.ndarray, steps: np.ndarray, colour: str, label: str, band: tuple[float, float]
) -> None:
    """Draw the median over seeds, and a band of quantiles."""
    low, middle, high = np.quantile(table, [band[0], 0.5, band[1]], axis=0)
    ax.plot(steps, middle, color=colour, label=label)
    ax.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)


@figures.register("ranking-curves", RankingOptions)
def ranking_curves(evidence: Evidence, options: RankingOptions) -> Figure:
    """Cumulative regret, holdout coverage and query coverage against queries: a column a problem, a line a method."""
    problems = list(dict.fromkeys(evidence.rows["problem"]))
    methods = list(dict.fromkeys(evidence.rows["method"]))
    colour = style.colours(methods)
    figure, axes = style.panels(len(ROWS), len(problems), sharex="col")
    for column, problem in enumerate(problems):
        for row, (metric, axis, nominal) in enumerate(ROWS):
            ax = axes[row][column]
            for method in methods:
                table = by_round(evidence.trials(problem, method), metric)
                draw_quantiles(
                    ax, table.to_numpy(), table.columns.to_numpy(), colour[method], method, options.quantiles
                )
            if nominal:
                level = by_round(evidence.trials(problem, methods[0]), nominal).mean()
                ax.plot(level.index, level, color="0.25", linestyle=":", linewidth=1, label="1 - alpha")
                ax.set_ylim(0, 1.03)
            if column == 0:
                ax.set_ylabel(axis)
        axes[0][column].set_title(problem)
        axes[-1][column].set_xlabel("query")
    figure.legend(*axes[-1][0].get_legend_handles_labels(), loc="outside upper center", ncols=len(methods) + 1)
    return figure
