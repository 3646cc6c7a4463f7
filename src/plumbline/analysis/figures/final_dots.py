"""Where a metric ends, a dot and an interval a line of words: what one change after another does."""

import numpy as np
from matplotlib.figure import Figure
from pydantic import Field

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.final_values import final_values
from plumbline.analysis.figures.sweep import final_interval
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.kinds import Names, OutputOptions, figures
from plumbline.core.errors import PlumblineError


class FinalDotsOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        metric: what is drawn, at the last round.
        label: its axis.
        dots: for each line of words, from top to bottom, a task and a method; the first is what others are compared
            with. All tasks and methods of the grid, by their own words, where there are none.
        subject: what the words are about, the vertical axis.
        stuck: runs that end above it are counted beside their dot: they are what means are made of.
    """

    metric: str
    label: str
    dots: dict[str, tuple[str, str]] = Field(default_factory=dict)
    subject: str = "method"
    stuck: float | None = None

    def names(self) -> Names:
        """Return the tasks and methods of the dots, and the metric."""
        pairs = self.dots.values()
        return Names(tuple(task for task, _ in pairs), tuple(method for _, method in pairs), (self.metric,))


def dots_of(found: Evidence, dots: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return the dots that have trials; without `dots`, those of the whole grid."""
    if dots:
        return {words: pair for words, pair in dots.items() if pair in found.pairs}
    alone = len(found.tasks) == 1
    return {
        found.legend(method).label if alone else f"{found.legend(method).label}, {found.title(task)}": (task, method)
        for task, method in found.pairs
    }


@figures.register("final-dots", FinalDotsOptions)
def final_dots(evidence: Evidence, options: FinalDotsOptions) -> Figure:
    """Where a metric ends: mean with its 70% interval, and median; a line goes down the mean of the first."""
    dots = dots_of(evidence, options.dots)
    if not dots:
        raise PlumblineError("no trials of any of the dots: nothing to draw")
    figure, ((ax,),) = style.panels(1, 1)
    figure.set_size_inches(style.PANEL[0] * 1.4, 0.9 + 0.3 * len(dots))
    for height, (task, method) in enumerate(dots.values()):
        low, mean, high = final_interval(evidence, task, method, options.metric)
        first = height == 0
        ax.errorbar(
            [mean],
            [height],
            xerr=np.array([[mean - low], [high - mean]]),
            color=style.CALIBRATED if first else style.PLAIN,
            marker="o",
            capsize=3,
            label="what others are compared with" if first else "mean and 70% interval",
        )
        ends = final_values(evidence, task, method, options.metric).dropna()
        ax.scatter([ends.median()], [height], s=70, c="0.15", marker="|", label="median", zorder=4)
        if options.stuck is not None and (count := int((ends > options.stuck).sum())):
            words = f"{count} of {len(ends)} stuck"
            ax.annotate(words, (1.02, height), xycoords=("axes fraction", "data"), va="center", fontsize=7)
        if first:
            ax.axvline(mean, color="0.5", linestyle=":", linewidth=1, zorder=0)
    ax.set_yticks(range(len(dots)), list(dots))
    ax.set_ylim(len(dots) - 0.5, -0.5)
    ax.set_ylabel(options.subject)
    ax.set_xlabel(options.label)
    style.add_legend(figure, columns=3)
    return figure
