"""Final values of all runs, one dot per seed: means hide stuck runs, and how few seeds a paper may have."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import PositiveInt

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.final_values import final_values
from plumbline.analysis.outputs import marks, style
from plumbline.analysis.outputs.kinds import Names, OutputOptions, figures
from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options
from plumbline.statistics.means import Mean

Array = NDArray[np.float64]

SPREAD = 0.3
"""Half of the width that the dots of a method take, where methods are one apart."""


class EndsPanel(Options):
    """The runs on a task.

    Attributes:
        task: the task.
        title: title of the panel; by default the title of the task.
        first: draw only so many of the first seeds, as a paper could have had; by default all.
    """

    task: str
    title: str = ""
    first: PositiveInt | None = None


class RunEndsOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        metric: the metric that is drawn, at the last round.
        label: label of the axis.
        panels: the panels, side by side; by default one for each task.
        stuck: the number of runs that end above this value stands above each method.
        logarithmic: whether the vertical axis is logarithmic.
    """

    metric: str
    label: str
    panels: tuple[EndsPanel, ...] = ()
    stuck: float | None = None
    logarithmic: bool = False

    def names(self) -> Names:
        """Return the tasks and the metric."""
        return Names(tuple(panel.task for panel in self.panels), metrics=(self.metric,))

    def shown(self, evidence: Evidence) -> str:
        """Return what dots and bars are."""
        return "one dot per run; mean and its 95% interval over seeds, and median"


def swarm(values: Array, low: float, high: float) -> Array:
    """Return the horizontal offset of each dot, so that dots of nearly the same value stand side by side.

    Args:
        values: `n`.
        low, high: of the axis, where values lie evenly.
    """
    height = (high - low) / 40 or 1.0
    bins = np.round((values - low) / height).astype(int)
    aside = np.zeros(len(values))
    for one in np.unique(bins):
        places = np.flatnonzero(bins == one)
        steps = np.arange(len(places)) - (len(places) - 1) / 2
        aside[places] = steps * min(0.09, 2 * SPREAD / max(len(places), 1))
    return aside


def draw_panel(
    ax: Axes, found: Evidence, panel: EndsPanel, methods: list[str], options: RunEndsOptions
) -> list[marks.Extent]:
    """Draw the dots of each method, their mean with its 95% interval, and their median; return the intervals."""
    styles = style.method_styles(found.legends, found.methods())
    ended_by = {
        method: final_values(found, panel.task, method, options.metric).dropna().sort_index() for method in methods
    }
    values = {method: series.iloc[: panel.first].to_numpy() for method, series in ended_by.items()}
    scale = np.log10 if options.logarithmic else np.asarray
    everything = scale(np.concatenate(list(values.values())))
    if not len(everything):
        marks.say(ax, marks.NO_VALUE)
    drawn = []
    for place, method in enumerate(methods):
        seeds, colour = values[method], styles[method].colour
        if not len(seeds):
            continue
        aside = swarm(scale(seeds), float(everything.min()), float(everything.max()))
        ax.scatter(place + aside, seeds, s=9, color=style.tint(colour, 0.55), linewidths=0, zorder=2)
        inferred = Mean(seeds, f"{panel.task} {method} {options.metric}")
        mean, (low, high) = inferred.value, inferred.interval()
        if not np.isfinite(low + high):  # too few seeds for an interval
            low = high = mean
        ax.errorbar(
            [place],
            [mean],
            [[mean - low], [high - mean]],
            color=colour,
            **styles[method].points,
            markersize=5,
            capsize=3,
            zorder=4,
        )
        median = np.median(seeds)
        ax.hlines(median, place - SPREAD, place + SPREAD, color="0.15", linewidth=1.6, zorder=3, label="median")
        if options.stuck is not None and (count := int((seeds > options.stuck).sum())):
            ax.annotate(
                f"{count} of {len(seeds)}", (place, 1.0), xycoords=("data", "axes fraction"), ha="center", fontsize=7
            )
        drawn.append(marks.interval(ax, place, low, high, colour))
    if options.stuck is not None:
        words = f"runs above {options.stuck:g} are counted"
        ax.axhline(options.stuck, color="0.5", linestyle=":", linewidth=1, label=words)
    if options.logarithmic:
        style.logarithmic(ax.yaxis)
    labels = [found.legend(method).label for method in methods]
    ax.set_xticks(range(len(methods)), labels, rotation=30, ha="right", rotation_mode="anchor")
    ax.set_xlim(-0.6, len(methods) - 0.4)
    return drawn


@figures.register("run-ends", RunEndsOptions)
def run_ends(evidence: Evidence, options: RunEndsOptions) -> Figure:
    """The last value of each run, one dot per seed; mean with 95% interval, and median.

    Raises:
        PlumblineError: no panel has trials.
        NotInReferenceError: there are reference results, and a value is not among them.
    """
    asked = options.panels or tuple(EndsPanel(task=task) for task in evidence.tasks)
    columns = [panel for panel in asked if evidence.methods(panel.task)]
    if not columns:
        raise PlumblineError("no trials of any of the panels: nothing to draw")
    figure, axes = style.wrapped_panels(len(columns))
    drawn = []
    for ax, panel in zip(axes, columns, strict=True):
        drawn += draw_panel(ax, evidence, panel, evidence.methods(panel.task), options)
        pad = 14 if options.stuck is not None else None
        style.set_title(ax, panel.title or evidence.title(panel.task), pad=pad)
    for ax, panel in zip(axes, columns, strict=True):
        first = next(other for other, of in zip(axes, columns, strict=True) if of.task == panel.task)
        if first is not ax:
            ax.sharey(first)
            ax.autoscale(axis="y")
            ax.autoscale_view(scalex=False)
    for ax in axes:
        if style.begins_a_line(ax):
            ax.set_ylabel(options.label)
    axes[-1].set_xlabel("method")
    axes[0].errorbar([], [], [], color="0.4", marker="o", capsize=3, label="mean and 95% interval")
    marks.mark_cuts(drawn)
    style.add_legend(figure)
    return figure
