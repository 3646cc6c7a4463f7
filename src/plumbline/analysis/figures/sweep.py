"""Where a metric ends against a parameter of the methods or of the tasks: LOCBO, figures 6 and 8b, 8c."""

from typing import NamedTuple, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import model_validator

from plumbline.analysis import style
from plumbline.analysis.evidence import Evidence
from plumbline.analysis.outputs import Names, OutputOptions, figures
from plumbline.errors import PlumblineError
from plumbline.measures.metrics import by_round
from plumbline.measures.statistics import mean_interval


class SweepOptions(OutputOptions):
    """Options of the figure: either methods vary, on the experiment's first task, or tasks do.

    What a preset leaves out is left out.

    Attributes:
        metric: what is drawn, at the last round.
        label: its axis.
        parameter: the horizontal axis, by the name under which `vary` of methods or tasks has it.
        axis: words of that axis, where the name will not do.
        logarithmic: whether it is logarithmic.
        lines: entries of methods that vary the parameter, a line each; all there are where none are named.
        constant: methods that do not depend on it, drawn across; all there are where none are named.
        tasks: instead of `lines`, tasks that vary the parameter; all there are where none are named.
        methods: with tasks that vary, a line each; all there are where none are named.
    """

    metric: str
    label: str
    parameter: str
    axis: str = ""
    logarithmic: bool = False
    lines: tuple[str, ...] | None = None
    constant: tuple[str, ...] | None = None
    tasks: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None

    keeps_curves = False

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
        return Names(self.tasks or (), methods, (self.metric,))


class Point(NamedTuple):
    """A value of the parameter, and what was run there."""

    value: float
    task: str
    method: str


def points_of_methods(found: Evidence, options: SweepOptions) -> dict[str, list[Point]]:
    """Return the points of each entry of methods that varies the parameter, on the first task."""
    task, points = found.tasks[0], dict[str, list[Point]]()
    for method in found.methods(task):
        look = found.look(method)
        entry = look.entry or method
        if options.parameter in look.parameters and (options.lines is None or entry in options.lines):
            points.setdefault(entry, []).append(Point(float(look.parameters[options.parameter]), task, method))
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
    legends = {found.look(point.method).legend for point in points}
    return legends.pop() if len(legends) == 1 else name


def final_interval(found: Evidence, task: str, method: str, metric: str) -> tuple[float, float, float]:
    """Return the mean over seeds at the last round between the ends of its 70% interval; NaN without any value."""
    table = by_round(found.trials(task, method), metric).to_numpy()
    if table.size == 0:
        return np.nan, np.nan, np.nan
    low, mean, high = mean_interval(table[:, -1])
    return float(low), float(mean), float(high)


def draw_line(
    ax: Axes, intervals: list[tuple[float, float, float]], x: list[float], look: style.LineStyle, label: str
) -> None:
    """Draw a line with a bar at each value of the parameter."""
    low, mean, high = np.array(intervals).T
    ax.errorbar(x, mean, (mean - low, high - mean), **look, marker="o", markersize=4, capsize=2, label=label)


def constants_of(found: Evidence, options: SweepOptions) -> list[str]:
    """Return the methods that do not vary, on the first task."""
    task = found.tasks[0]
    if options.constant is not None:
        return found.named(options.constant, task)
    return [method for method in found.methods(task) if options.parameter not in found.look(method).parameters]


@figures.register("sweep", SweepOptions)
def sweep(evidence: Evidence, options: SweepOptions) -> Figure:
    """The last value of a metric against a parameter; methods without it are bands across."""
    over_tasks = points_of_tasks(evidence, options) if options.lines is None else {}
    lines = over_tasks or points_of_methods(evidence, options)
    constant = [] if over_tasks else constants_of(evidence, options)
    if not lines:
        raise PlumblineError(f"no task and no method with trials varies {options.parameter!r}: nothing to draw")
    looks = style.lines(evidence.looks, evidence.methods())
    figure, ((ax,),) = style.panels(1, 1)
    style.enlarge(figure)
    values = [point.value for points in lines.values() for point in points]
    # Bars of neighbouring lines stand side by side.
    step = 0.012 * (np.log(max(values) / min(values)) if options.logarithmic else max(values) - min(values))
    for i, (name, points) in enumerate(lines.items()):
        shift = step * (i - (len(lines) - 1) / 2)
        x = [point.value * np.exp(shift) if options.logarithmic else point.value + shift for point in points]
        intervals = [final_interval(evidence, point.task, point.method, options.metric) for point in points]
        draw_line(ax, intervals, x, looks[points[0].method], legend_of(evidence, name, points))
    for method in constant:
        low, mean, high = final_interval(evidence, evidence.tasks[0], method, options.metric)
        ax.axhline(mean, **looks[method], linewidth=1.2, label=evidence.look(method).legend)
        ax.axhspan(low, high, color=looks[method]["color"], alpha=0.1, linewidth=0)
    if options.logarithmic:
        ax.set_xscale("log")
    ticks = sorted(set(values))
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel(options.axis or options.parameter)
    ax.set_ylabel(options.label)
    style.add_legend(figure, columns=4)
    return figure
