"""Where a metric ends against a parameter of the methods or of the problem: LOCBO, figures 6 and 8b, 8c."""

from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field, model_validator

from plumbline.analysis import style
from plumbline.analysis.collect import Evidence
from plumbline.analysis.metrics import by_round
from plumbline.analysis.outputs import figures
from plumbline.analysis.statistics import mean_interval
from plumbline.options import Options

Point = tuple[float, str, str]
"""A value of the parameter, a problem and a method."""


class SweepOptions(Options):
    """Options of the figure.

    Attributes:
        metric: what is drawn, at the last round.
        label: its axis.
        parameter: the horizontal axis.
        logarithmic: whether that is logarithmic.
        lines: for each line, the method at each value of the parameter, on the experiment's first problem. What a
            preset leaves out is left out.
        constant: methods that do not depend on the parameter, by the words of the legend.
        problems: instead of `lines`, the problem at each value of the parameter.
        across: with `problems`, the methods by the words of the legend.
        look: how lines are told apart.
    """

    metric: str
    label: str
    parameter: str
    logarithmic: bool = False
    lines: dict[str, dict[float, str]] = Field(default_factory=dict)
    constant: dict[str, str] = Field(default_factory=dict)
    problems: dict[float, str] = Field(default_factory=dict)
    across: dict[str, str] = Field(default_factory=dict)
    look: style.Look = style.Look()

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.lines) == bool(self.problems) or bool(self.problems) != bool(self.across):
            raise ValueError("give `lines`, or `problems` with `across`")
        return self

    def points(self, first: str) -> dict[str, list[Point]]:
        """Return, by the label of each line, the value, problem and method of its points."""
        return {
            **{label: [(value, first, method) for value, method in of.items()] for label, of in self.lines.items()},
            **{
                label: [(value, of, method) for value, of in self.problems.items()]
                for label, method in self.across.items()
            },
        }


def final_interval(found: Evidence, problem: str, method: str, metric: str) -> tuple[float, float, float]:
    """Return the mean over seeds at the last round between the ends of its 70% interval."""
    values = by_round(found.trials(problem, method), metric).to_numpy()[:, -1]
    low, mean, high = mean_interval(values)
    return float(low), float(mean), float(high)


def draw_line(
    ax: Axes, intervals: list[tuple[float, float, float]], x: list[float], look: style.LineStyle, label: str
) -> None:
    """Draw a line with a bar at each value of the parameter."""
    low, mean, high = np.array(intervals).T
    ax.errorbar(x, mean, (mean - low, high - mean), **look, marker="o", markersize=4, capsize=2, label=label)


@figures.register("sweep", SweepOptions)
def sweep(evidence: Evidence, options: SweepOptions) -> Figure:
    """The last value of a metric against a parameter; methods without it are bands across."""
    first = evidence.rows["problem"].iloc[0]
    there = set(zip(evidence.rows["problem"], evidence.rows["method"], strict=True))
    planned = {label: [point for point in of if point[1:] in there] for label, of in options.points(first).items()}
    lines = [(label, of) for label, of in planned.items() if of]
    looks = options.look.of([*options.constant, *planned])
    figure, ((ax,),) = style.panels(1, 1)
    values = [value for _, points in lines for value, _, _ in points]
    # Bars of neighbouring lines stand side by side.
    step = 0.012 * (np.log(max(values) / min(values)) if options.logarithmic else max(values) - min(values))
    for i, (label, points) in enumerate(lines):
        shift = step * (i - (len(lines) - 1) / 2)
        x = [value * np.exp(shift) if options.logarithmic else value + shift for value, _, _ in points]
        intervals = [final_interval(evidence, problem, method, options.metric) for _, problem, method in points]
        draw_line(ax, intervals, x, looks[label], label)
    for label, method in options.constant.items():
        if (first, method) not in there:
            continue
        low, mean, high = final_interval(evidence, first, method, options.metric)
        ax.axhline(mean, **looks[label], linewidth=1.2, label=label)
        ax.axhspan(low, high, color=looks[label]["color"], alpha=0.1, linewidth=0)
    if options.logarithmic:
        ax.set_xscale("log")
    ticks = sorted(set(values))
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel(options.parameter)
    ax.set_ylabel(options.label)
    style.add_legend(figure, columns=4)
    return figure
