"""Where a metric ends, a dot and an interval a line of words: what one change after another does."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field, model_validator

from plumbline.analysis.evidence.bands import LEVEL
from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.reference import EndSummary
from plumbline.analysis.figures.sweep import interval_of
from plumbline.analysis.outputs import style
from plumbline.analysis.outputs.kinds import Names, OutputOptions, figures
from plumbline.core.errors import PlumblineError


class FinalDotsOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        metric: the metric that is drawn, at the last round.
        label: label of the axis.
        dots: for each line of words, from top to bottom, a task and a method. All tasks and methods of the grid, by
            their own words, where there are none.
        references: dots with which those below them are compared, down to the next reference; by default the first
            dot, and each below it that is of another task than the dot above.
        nominal: the metric with its nominal value, drawn dotted at each dot.
        subject: label of the vertical axis.
        title: title of the figure; by default the title of the task, if all dots are of one task.
        stuck: the number of runs that end above this value stands beside each dot.
    """

    metric: str
    label: str
    dots: dict[str, tuple[str, str]] = Field(default_factory=dict)
    references: tuple[str, ...] = ()
    nominal: str | None = None
    subject: str = "method"
    title: str = ""
    stuck: float | None = None

    @model_validator(mode="after")
    def _references_are_dots(self) -> Self:
        if self.references and self.references[0] != next(iter(self.dots), None):
            raise ValueError("the first of `references` is the first of `dots`")
        for words in self.references:
            if words not in self.dots:
                raise ValueError(f"the reference {words!r} is none of the dots")
        return self

    def names(self) -> Names:
        """Return the tasks and methods of the dots, and the metrics."""
        pairs = self.dots.values()
        metrics = (self.metric, self.nominal) if self.nominal else (self.metric,)
        return Names(tuple(task for task, _ in pairs), tuple(method for _, method in pairs), metrics)

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


def groups_of(
    dots: Mapping[str, tuple[str, str]], there: Mapping[str, tuple[str, str]], references: Sequence[str]
) -> dict[str, list[str]]:
    """Return the dots that have trials by the one with which they are compared, which may have none itself.

    Args:
        dots: all of them.
        there: those that have trials.
        references: those that begin a group; where there are none, a group begins with another task.
    """
    groups: dict[str, list[str]] = {}
    before = None
    for words, (task, _) in dots.items():
        if words in references if references else task != before:
            groups[words] = []
        before = task
        if words in there:
            groups[next(reversed(groups))].append(words)
    return {first: of for first, of in groups.items() if of}


WIDTH = 7.0
"""Of the figure in inches."""

REFERENCE = "mean of the first in each group"
"""Words of the legend for the line that a group is compared with, where there are several groups."""


@figures.register("final-dots", FinalDotsOptions)
def final_dots(evidence: Evidence, options: FinalDotsOptions) -> Figure:
    """Final value of a metric: mean, its 70% interval, and median; a line marks the mean of the first in each group.

    Raises:
        PlumblineError: no dot has trials.
        NotInReferenceError: there are reference results, and a value is not among them.
    """
    dots = dots_of(evidence, options.dots)
    if not dots:
        raise PlumblineError("no trials of any of the dots: nothing to draw")
    styles = style.method_styles(evidence.legends, evidence.methods())
    ends = [evidence.end_summary(task, method, options.metric, options.stuck) for task, method in dots.values()]
    figure, ((ax,),) = style.panels(1, 1)
    figure.set_size_inches(WIDTH, 1.3 + 0.28 * len(dots))
    for height, ((words, (_, method)), ended) in enumerate(zip(dots.items(), ends, strict=True)):
        draw_dot(ax, height, ended, styles[method])
        if options.stuck is not None and ended.above:
            count = f"{ended.above} of {ended.seeds} stuck"
            ax.annotate(count, (1.02, height), xycoords=("axes fraction", "data"), va="center", fontsize=7.5)
        if options.nominal:
            level = evidence.end_summary(*dots[words], options.nominal).mean
            draw_across(ax, level, height, 1, color="0.25", linestyle=":", linewidth=1.2, label=style.NOMINAL)
    draw_references(ax, groups_of(options.dots or dots, dots, options.references), [ended.mean for ended in ends])
    ax.errorbar([], [], xerr=[], color="0.4", marker="o", capsize=3, label=f"mean and {LEVEL:.0%} interval")
    ax.set_yticks(range(len(dots)), list(dots))
    ax.set_ylim(len(dots) - 0.5, -0.5)
    ax.set_ylabel(options.subject)
    ax.set_xlabel(options.label)
    tasks = {task for task, _ in dots.values()}
    style.set_title(ax, options.title or (evidence.title(*tasks) if len(tasks) == 1 else ""))
    style.add_legend(figure, columns=3, last=style.NOMINAL)
    return figure


def draw_across(ax: Axes, value: float, top: float, lines: int, **look: Any) -> None:
    """Draw a value across so many `lines` of words, of which the first is at height `top`; nothing where it is NaN."""
    if np.isfinite(value):
        ax.plot([value, value], [top - 0.5, top + lines - 0.5], **look)


def draw_references(ax: Axes, groups: Mapping[str, Sequence[str]], means: Sequence[float]) -> None:
    """Draw the mean with which a group is compared across its lines, and thin lines between groups.

    Args:
        ax: where to.
        groups: words of the dots of each group by its reference, from top to bottom.
        means: of all dots, from top to bottom.
    """
    label = REFERENCE if len(groups) > 1 else f"mean of “{next(iter(groups))}”"
    top = 0
    for first, of in groups.items():
        if first == of[0]:
            draw_across(ax, means[top], top, len(of), color="0.55", linewidth=0.9, zorder=0, label=label)
        if top:
            ax.axhline(top - 0.5, color="0.85", linewidth=0.7, zorder=0)
        top += len(of)


def draw_dot(ax: Axes, height: int, ended: EndSummary, its: style.MethodStyle) -> None:
    """Draw a mean with its interval, and a tick at the median where that is known."""
    low, mean, high = interval_of(ended)
    bar = [[mean - low], [high - mean]]
    ax.errorbar([mean], [height], xerr=bar, color=its.colour, **its.points, markersize=5, capsize=3)
    if np.isfinite(ended.median):
        ax.scatter([ended.median], [height], s=70, c="0.15", marker="|", label="median", zorder=4)
