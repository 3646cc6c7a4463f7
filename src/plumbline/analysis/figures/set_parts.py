"""What makes the sets of methods as long as they are along a line: thresholds, and standard deviations."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtri

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.figures.model_steps import pictures_of
from plumbline.analysis.outputs import marks, style
from plumbline.analysis.outputs.kinds import Names, OutputOptions, figures
from plumbline.core.errors import PlumblineError

NEAR = 0.01
"""Hills as high as the highest but for this share of the function's range are optima too."""

PARTS = {"width": "length of the set", "threshold": "threshold", "deviation": "standard deviation of y"}
"""A set is as long as the deviation times what the threshold asks for, to either side."""


class SetPartsOptions(OutputOptions):
    """Options of the figure.

    Attributes:
        task: a one-dimensional task whose trials took snapshots; by default the first.
        methods: the methods with thresholds, one line each; by default all on the task.
    """

    task: str = ""
    methods: tuple[str, ...] = ()

    def names(self) -> Names:
        """Return the task and the methods."""
        return Names((self.task,) if self.task else (), self.methods)

    def shown(self, evidence: Evidence) -> str:
        """Return what lines are."""
        return "mean over seeds"


def optima(picture: pd.DataFrame) -> list[float]:
    """Return the positions of the highest local maxima of the function in a snapshot, from left to right."""
    line = picture.sort_values("x")
    f, x = line["f"].to_numpy(), line["x"].to_numpy()
    high = f >= f.max() - NEAR * (f.max() - f.min())
    return [
        float(x[i])
        for i in range(len(f))
        if high[i] and f[i] == f[max(i - 1, 0) : i + 2].max() and (i == 0 or f[i] > f[i - 1])
    ]


def mark_optima(ax: Axes, at: list[float]) -> None:
    """Draw a dotted line up each optimum."""
    for x in at:
        ax.axvline(x, color="0.4", linestyle=":", linewidth=1, label="optimum", zorder=0)


def with_deviation(pictures: pd.DataFrame) -> pd.DataFrame:
    """Return pictures with the model's standard deviation of an observation; missing where a set has no length."""
    half = -ndtri(pictures["threshold"].clip(1e-6, 1.0) / 2)
    return pictures.assign(deviation=(pictures["width"] / (2 * half)).where(half > 0))


@figures.register("set-parts", SetPartsOptions)
def set_parts(evidence: Evidence, options: SetPartsOptions) -> Figure:
    """Length of the sets, threshold and standard deviation before the last snapshot's query; means over seeds.

    Raises:
        PlumblineError: the task has no snapshots, or none of a method with a threshold.
        NotInReferenceError: there are reference results, which hold no snapshots.
    """
    first = pictures_of(evidence, options.task)
    task, now = first["task"].iloc[0], first["iteration"].max()
    found = evidence.snapshots
    found = found[(found["task"] == task) & (found["iteration"] == now) & found["threshold"].notna()]
    methods = [
        method
        for method in (evidence.named(options.methods, task) if options.methods else evidence.methods(task))
        if (found["method"] == method).any()
    ]
    if not methods:
        raise PlumblineError(f"no snapshot of a method with a threshold on {task!r}: nothing to draw")
    styles = style.method_styles(evidence.legends, evidence.methods())
    figure, (axes,) = style.panels(1, len(PARTS), sharex=True)
    for i, method in enumerate(methods):
        mean = with_deviation(found[found["method"] == method]).groupby("x")[list(PARTS)].mean()
        its, label = styles[method], evidence.legend(method).label
        for ax, part in zip(axes, PARTS, strict=True):
            marks.draw_line(ax, mean.index.to_numpy(), mean[part].to_numpy(), its, i, len(methods), label=label)
    for ax, words in zip(axes, PARTS.values(), strict=True):
        mark_optima(ax, optima(first[first["iteration"] == now].drop_duplicates("x")))
        ax.set_xlabel("x")
        ax.set_ylabel(words)
        style.set_title(ax, evidence.title(task))
    style.add_legend(figure, last="optimum")
    return figure
