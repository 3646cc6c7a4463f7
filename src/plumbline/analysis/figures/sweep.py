"""Final values of a metric against a parameter of the methods or of the tasks: LOCBO, figures 6 and 8b, 8c."""

from typing import NamedTuple, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import model_validator

from plumbline.analysis.evidence.bands import LEVEL
from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.reference import EndSummary
from plumbline.analysis.outputs import marks, style
from plumbline.analysis.outputs.kinds import Names, OutputOptions, figures
from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options
from plumbline.statistics.over_seeds import student_interval


class MetricAxis(Options):
    """A metric and the words of its axis.

    Attributes:
        metric: the metric, whose final values are drawn.
        label: label of the vertical axis.
        nominal: the metric with its nominal value, averaged over methods and drawn dotted.
    """

    metric: str
    label: str
    nominal: str | None = None


class SweepOptions(OutputOptions, MetricAxis):
    """Options of the figure: either methods vary, on some tasks, or tasks do.

    What a preset leaves out is left out.

    Attributes:
        below: further metrics, each in its own row of panels.
        columns: tasks on which methods vary, one column each; by default the first of the experiment.
        parameter: the parameter on the horizontal axis, by its name in `vary` of the methods or tasks.
        axis: label of the horizontal axis; by default the name of the parameter.
        logarithmic: whether the horizontal axis is logarithmic.
        lines: entries of methods that vary the parameter, one line each; by default all.
        constant: methods that do not depend on the parameter, drawn as horizontal lines; by default all.
        tasks: instead of `lines`, tasks that vary the parameter; by default all.
        methods: the methods if tasks vary, one line each; by default all.
    """

    parameter: str
    below: tuple[MetricAxis, ...] = ()
    columns: tuple[str, ...] = ()
    axis: str = ""
    logarithmic: bool = False
    lines: tuple[str, ...] | None = None
    constant: tuple[str, ...] | None = None
    tasks: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.lines is not None or self.constant is not None) and (
            self.tasks is not None or self.methods is not None
        ):
            raise ValueError("give `lines` and `constant` where methods vary, or `tasks` and `methods` where tasks do")
        return self

    def names(self) -> Names:
        """Return the tasks, the methods and entries of methods, and the metric."""
        methods = (*(self.lines or ()), *(self.constant or ()), *(self.methods or ()))
        metrics = (name for row in self.rows() for name in (row.metric, row.nominal) if name)
        return Names((*(self.tasks or ()), *self.columns), methods, tuple(metrics))

    def shown(self, evidence: Evidence) -> str:
        """Return what points, bars and bands are."""
        return f"mean and its {LEVEL:.0%} interval over seeds"

    def rows(self) -> tuple[MetricAxis, ...]:
        """Return the metrics, from top to bottom."""
        return (self, *self.below)


class Point(NamedTuple):
    """A value of the parameter, and what was run there."""

    value: float
    task: str
    method: str


def points_of_methods(found: Evidence, task: str, options: SweepOptions) -> dict[str, list[Point]]:
    """Return the points of each entry of methods that varies the parameter, on a task."""
    points = dict[str, list[Point]]()
    for method in found.methods(task):
        legend = found.legend(method)
        entry = legend.entry or method
        if options.parameter in legend.parameters and (options.lines is None or entry in options.lines):
            points.setdefault(entry, []).append(Point(float(legend.parameters[options.parameter]), task, method))
    return {entry: sorted(points[entry]) for entry in options.lines or points if entry in points}


def points_of_tasks(found: Evidence, options: SweepOptions) -> dict[str, list[Point]]:
    """Return the points of each method over the tasks that vary the parameter."""
    tasks = options.tasks if options.tasks is not None else found.tasks
    values = {
        task: float(values[options.parameter])
        for task in tasks
        if options.parameter in (values := found.task_parameters.get(task, {}))
    }
    methods = found.methods() if options.methods is None else found.named(options.methods)
    points = {
        method: sorted(Point(value, task, method) for task, value in values.items() if (task, method) in found.pairs)
        for method in methods
    }
    return {method: of for method, of in points.items() if of}


def legend_of(found: Evidence, name: str, points: list[Point]) -> str:
    """Return the words of a line's legend: those that its methods share, else its name."""
    labels = {found.legend(point.method).label for point in points}
    return labels.pop() if len(labels) == 1 else name


def final_interval(found: Evidence, task: str, method: str, metric: str) -> tuple[float, float, float]:
    """Return the mean over seeds at the last round between the ends of its 70% interval; NaN without any value."""
    return interval_of(found.end_summary(task, method, metric))


def interval_of(ended: EndSummary) -> tuple[float, float, float]:
    """Return a mean between the ends of its 70% interval; NaN without any value."""
    low, mean, high = student_interval(np.array(ended.mean), np.array(ended.error), np.array(ended.seeds), LEVEL)
    return float(low), float(mean), float(high)


def draw_line(
    ax: Axes, intervals: list[tuple[float, float, float]], x: list[float], its: style.MethodStyle, label: str
) -> None:
    """Draw a line with a bar at each value of the parameter."""
    low, mean, high = np.array(intervals).T
    ax.errorbar(x, mean, (mean - low, high - mean), **its.line, **its.points, markersize=4.5, capsize=2, label=label)


def constants_of(found: Evidence, task: str, options: SweepOptions) -> list[str]:
    """Return the methods that do not vary, on a task."""
    if options.constant is not None:
        return found.named(options.constant, task)
    return [method for method in found.methods(task) if options.parameter not in found.legend(method).parameters]


def draw_panel(
    ax: Axes,
    found: Evidence,
    row: MetricAxis,
    lines: dict[str, list[Point]],
    constant: list[Point],
    options: SweepOptions,
) -> None:
    """Draw a metric: a line for each of `lines`, and a band across for each of `constant`."""
    styles = style.method_styles(found.legends, found.methods())
    values = [point.value for points in lines.values() for point in points]
    # Bars of neighbouring lines stand side by side.
    step = 0.012 * (np.log(max(values) / min(values)) if options.logarithmic else max(values) - min(values))
    for i, (name, points) in enumerate(lines.items()):
        shift = step * (i - (len(lines) - 1) / 2)
        x = [point.value * np.exp(shift) if options.logarithmic else point.value + shift for point in points]
        intervals = [final_interval(found, point.task, point.method, row.metric) for point in points]
        draw_line(ax, intervals, x, styles[points[0].method], legend_of(found, name, points))
    for i, (_, task, method) in enumerate(constant):
        low, mean, high = final_interval(found, task, method, row.metric)
        marks.draw_level(ax, mean, styles[method], i, len(constant), found.legend(method).label)
        ax.axhspan(low, high, color=styles[method].colour, alpha=0.1, linewidth=0)
    if row.nominal:
        every = [point for points in (*lines.values(), constant) for point in points]
        levels = [final_interval(found, point.task, point.method, row.nominal)[1] for point in every]
        ax.axhline(float(np.nanmean(levels)), color="0.25", linestyle=":", linewidth=1.2, label=style.NOMINAL)
    if not np.isfinite(ax.dataLim.get_points()[:, 1]).any():
        marks.say(ax, marks.NO_VALUE)
    if options.logarithmic:
        ax.set_xscale("log")
    ticks = sorted(set(values))
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


@figures.register("sweep", SweepOptions)
def sweep(evidence: Evidence, options: SweepOptions) -> Figure:
    """Final values against a parameter, one row per metric; methods without the parameter are horizontal bands.

    Raises:
        PlumblineError: no task and no method with trials varies the parameter.
        NotInReferenceError: there are reference results, and a value is not among them.
    """
    over_tasks = points_of_tasks(evidence, options) if options.lines is None else {}
    columns: list[tuple[str, dict[str, list[Point]], list[Point]]] = [("", over_tasks, [])] if over_tasks else []
    if not over_tasks:
        named = [task for task in options.columns if task in evidence.tasks]
        for task in named or evidence.tasks[:1]:
            across = [Point(np.nan, task, method) for method in constants_of(evidence, task, options)]
            columns.append((evidence.title(task), points_of_methods(evidence, task, options), across))
    columns = [column for column in columns if column[1]]
    if not columns:
        raise PlumblineError(f"no task and no method with trials varies {options.parameter!r}: nothing to draw")
    rows = options.rows()
    figure, axes = style.panels(len(rows), len(columns), sharex="col")
    if len(rows) == len(columns) == 1:
        style.enlarge(figure)
    for j, (title, lines, constant) in enumerate(columns):
        for i, row in enumerate(rows):
            draw_panel(axes[i][j], evidence, row, lines, constant, options)
        axes[-1][j].set_xlabel(options.axis or options.parameter)
        style.set_title(axes[0][j], title)
    for line, row in zip(axes, rows, strict=True):
        line[0].set_ylabel(row.label)
    style.add_legend(figure, columns=4, last=style.NOMINAL)
    return figure
