"""Mean ranks of methods: over all tasks, by one or several metrics, and task by task."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field

from plumbline.analysis.comparisons.ranks import Ranks, ranked, with_one_seed
from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.kinds import Names, OutputOptions, figures

SPREAD = 0.6
"""Share of the height of a line that the dots of several metrics take."""


class MeanRanksOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        metrics: the metrics by which methods are ranked, with their labels; the first determines the order, and is
            shown for each task.
        titles: short titles for tasks; the others keep their own.
    """

    metrics: dict[str, str] = Field(min_length=1)
    titles: dict[str, str] = Field(default_factory=dict)

    def names(self) -> Names:
        """Return the metrics, and the tasks that have other words."""
        return Names(tasks=tuple(self.titles), metrics=tuple(self.metrics))

    def shown(self, evidence: Evidence) -> str:
        """Return what dots and bars are, and which methods have none."""
        left_out = [evidence.legend(method).label for method in with_one_seed(evidence)]
        besides = f"; not ranked, with one seed: {', '.join(left_out)}" if left_out else ""
        return "mean rank and its 95% interval over seeds" + besides


@figures.register("mean-ranks", MeanRanksOptions)
def mean_ranks(evidence: Evidence, options: MeanRanksOptions) -> Figure:
    """Mean rank over tasks with its 95% interval over seeds, the best method on top; beside it, ranks on each task.

    Raises:
        PlumblineError: no task that all methods ran on, or no seed that is on all of them.
    """
    found = ranked(evidence, tuple(options.metrics))
    first = next(iter(options.metrics))
    overall_of = {metric: {name: found.overall(metric, name) for name in found.methods} for metric in found.tables}
    methods = sorted(found.methods, key=lambda method: overall_of[first][method][0])
    figure, ((overall, by_task),) = style.panels(1, 2, sharey=True, width_ratios=[1, 0.35 + 0.11 * len(found.tasks)])
    figure.set_size_inches(4.6 + 0.5 * len(found.tasks), 1.7 + 0.33 * len(methods))
    draw_overall(
        overall, {options.metrics[metric]: [of[name] for name in methods] for metric, of in overall_of.items()}
    )
    titles = [options.titles.get(task, evidence.title(task)) for task in found.tasks]
    draw_tasks(by_task, found, methods, first, options.metrics[first], titles)
    overall.set_yticks(range(len(methods)), [evidence.legend(method).label for method in methods])
    overall.set_ylim(len(methods) - 0.5, -0.5)
    overall.set_ylabel("method")
    style.add_legend(figure, columns=3)
    return figure


def draw_overall(ax: Axes, ranks: dict[str, list[tuple[float, float, float]]]) -> None:
    """Draw mean ranks over all tasks with their intervals, those of a metric in a colour and by its words."""
    count = len(next(iter(ranks.values())))
    steps = (np.arange(len(ranks)) - (len(ranks) - 1) / 2) * SPREAD / len(ranks)
    for (words, of), step, colour in zip(ranks.items(), steps, style.colours(ranks).values(), strict=True):
        value, low, high = np.array(of).T
        ax.errorbar(
            value,
            np.arange(count) + step,
            xerr=(value - low, high - value),
            color=colour,
            linestyle="none",
            marker=style.marker_of(colour),
            markersize=4,
            elinewidth=1.2,
            label=style.legend_entry(words),
        )
    ax.axvline((1 + count) / 2, color="0.5", linestyle=":", linewidth=1, label="mean of all methods")
    ax.set_xlabel("mean rank over all tasks (1: best)")


def draw_tasks(ax: Axes, found: Ranks, methods: list[str], metric: str, words: str, titles: list[str]) -> None:
    """Draw mean ranks on each task by a metric, one column per task, as numbers on shades; `words` say which metric."""
    table = np.array([[found.of_task(metric, task, method) for task in found.tasks] for method in methods])
    # The darkest shade leaves black numbers readable.
    ax.imshow(table, cmap="Blues_r", vmin=1 - len(methods), vmax=len(methods), aspect="auto")
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            ax.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=7.5)
    ax.set_xticks(range(len(titles)), titles, rotation=35, ha="right", rotation_mode="anchor")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(f"mean rank on each task\nby {words}")
