"""Where a metric ends, a dot and an interval a method, a panel a problem."""

import numpy as np
from matplotlib.figure import Figure
from pydantic import Field

from plumbline.analysis import style
from plumbline.analysis.collect import Evidence
from plumbline.analysis.figures.sweep import final_interval
from plumbline.analysis.outputs import figures
from plumbline.options import Options


class FinalDotsOptions(Options):
    """Options of the figure.

    Attributes:
        metric: what is drawn, at the last round.
        label: its axis.
        baseline: the method that others are compared with: a line down its mean.
        names: methods by the words of the axis, where their own labels will not do.
    """

    metric: str
    label: str
    baseline: str | None = None
    names: dict[str, str] = Field(default_factory=dict)


@figures.register("final-dots", FinalDotsOptions)
def final_dots(evidence: Evidence, options: FinalDotsOptions) -> Figure:
    """The last value of a metric with its 70% interval, methods from top to bottom."""
    rows = evidence.rows
    problems = list(dict.fromkeys(rows["problem"]))
    methods = {p: list(dict.fromkeys(rows.loc[rows["problem"] == p, "method"])) for p in problems}
    colours = style.colours(list(dict.fromkeys(rows["method"])))
    figure, axes = style.panels(1, len(problems))
    for ax, problem in zip(axes[0], problems, strict=True):
        for height, method in enumerate(methods[problem]):
            low, mean, high = final_interval(evidence, problem, method, options.metric)
            bars = np.array([[mean - low], [high - mean]])
            ax.errorbar([mean], [height], xerr=bars, color=colours[method], marker="o", capsize=3)
            if method == options.baseline:
                ax.axvline(mean, color="0.5", linestyle=":", linewidth=1, zorder=0)
        ax.set_yticks(range(len(methods[problem])), [options.names.get(name, name) for name in methods[problem]])
        ax.invert_yaxis()
        ax.margins(y=0.15)
        ax.set_title(problem)
        ax.set_xlabel(options.label)
    return figure
