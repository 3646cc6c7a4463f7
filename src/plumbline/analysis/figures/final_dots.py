"""Where a metric ends, a dot and an interval a line of words: what one change after another does."""

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
        dots: for each line of words, from top to bottom, a problem and a method; the first is what others are compared
            with.
        subject: what the words are about, the vertical axis.
    """

    metric: str
    label: str
    dots: dict[str, tuple[str, str]] = Field(min_length=1)
    subject: str = "method"


@figures.register("final-dots", FinalDotsOptions)
def final_dots(evidence: Evidence, options: FinalDotsOptions) -> Figure:
    """The last value of a metric with its 70% interval, and a line down the mean of the first."""
    figure, ((ax,),) = style.panels(1, 1)
    figure.set_size_inches(style.PANEL[0] * 1.4, 0.9 + 0.3 * len(options.dots))
    for height, (problem, method) in enumerate(options.dots.values()):
        low, mean, high = final_interval(evidence, problem, method, options.metric)
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
        if first:
            ax.axvline(mean, color="0.5", linestyle=":", linewidth=1, zorder=0)
    ax.set_yticks(range(len(options.dots)), list(options.dots))
    ax.set_ylim(len(options.dots) - 0.5, -0.5)
    ax.set_ylabel(options.subject)
    ax.set_xlabel(options.label)
    style.add_legend(figure)
    return figure
