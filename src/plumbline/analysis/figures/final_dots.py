"""Where a metric ends, a dot and an interval a line of words: what one change after another does."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field

from plumbline.analysis.evidence.bands import LEVEL
from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.filed import EndSummary
from plumbline.analysis.figures.sweep import interval_of
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.kinds import Names, OutputOptions, figures
from plumbline.core.errors import PlumblineError


class FinalDotsOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        metric: the metric that is drawn, at the last round.
        label: label of the axis.
        dots: for each line of words, from top to bottom, a task and a method; the first is what others are compared
            with. All tasks and methods of the grid, by their own words, where there are none.
        subject: label of the vertical axis.
        title: title of the figure; by default the title of the task, if all dots are of one task.
        stuck: the number of runs that end above this value stands beside each dot.
    """

    metric: str
    label: str
    dots: dict[str, tuple[str, str]] = Field(default_factory=dict)
    subject: str = "method"
    title: str = ""
    stuck: float | None = None

    def names(self) -> Names:
        """Return the tasks and methods of the dots, and the metric."""
        pairs = self.dots.values()
        return Names(tuple(task for task, _ in pairs), tuple(method for _, method in pairs), (self.metric,))

    def shown(self, evidence: Evidence) -> str:
        """Return what dots and bars are; older reference results have no medians."""
        dots = dots_of(evidence, self.dots).values()
        medians = [evidence.end_summary(task, method, self.metric).median for task, method in dots]
        return f"mean and its {LEVEL:.0%} interval over seeds{', and median' * bool(np.isfinite(medians).any())}"


def dots_of(found: Evidence, dots: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return the dots that have trials; without `dots`, those of the whole grid."""
    if dots:
        return {words: pair for words, pair in dots.items() if pair in found.pairs}
    alone = len(found.tasks) == 1
    return {
        found.legend(method).label if alone else f"{found.legend(method).label}, {found.title(task)}": (task, method)
        for task, method in found.pairs
    }


WIDTH = 7.0
"""Of the figure in inches."""


@figures.register("final-dots", FinalDotsOptions)
def final_dots(evidence: Evidence, options: FinalDotsOptions) -> Figure:
    """Final value of a metric: mean with its 70% interval, and median; a line marks the mean of the first method."""
    dots = dots_of(evidence, options.dots)
    if not dots:
        raise PlumblineError("no trials of any of the dots: nothing to draw")
    styles = style.method_styles(evidence.legends, evidence.methods())
    ends = [evidence.end_summary(task, method, options.metric, options.stuck) for task, method in dots.values()]
    figure, ((ax,),) = style.panels(1, 1)
    figure.set_size_inches(WIDTH, 1.3 + 0.28 * len(dots))
    for height, ((_, method), ended) in enumerate(zip(dots.values(), ends, strict=True)):
        draw_dot(ax, height, ended, styles[method])
        if options.stuck is not None and ended.above:
            words = f"{ended.above} of {ended.seeds} stuck"
            ax.annotate(words, (1.02, height), xycoords=("axes fraction", "data"), va="center", fontsize=7.5)
    first = next(iter(dots))
    ax.axvline(ends[0].mean, color="0.5", linestyle=":", linewidth=1, zorder=0, label=f"mean of “{first}”")
    ax.errorbar([], [], xerr=[], color="0.4", marker="o", capsize=3, label=f"mean and {LEVEL:.0%} interval")
    ax.set_yticks(range(len(dots)), list(dots))
    ax.set_ylim(len(dots) - 0.5, -0.5)
    ax.set_ylabel(options.subject)
    ax.set_xlabel(options.label)
    tasks = {task for task, _ in dots.values()}
    style.set_title(ax, options.title or (evidence.title(*tasks) if len(tasks) == 1 else ""))
    style.add_legend(figure, columns=3)
    return figure


def draw_dot(ax: Axes, height: int, ended: EndSummary, its: style.MethodStyle) -> None:
    """Draw a mean with its interval, and a tick at the median where that is known."""
    low, mean, high = interval_of(ended)
    bar = [[mean - low], [high - mean]]
    ax.errorbar([mean], [height], xerr=bar, color=its.colour, **its.points, markersize=5, capsize=3)
    if np.isfinite(ended.median):
        ax.scatter([ended.median], [height], s=70, c="0.15", marker="|", label="median", zorder=4)
