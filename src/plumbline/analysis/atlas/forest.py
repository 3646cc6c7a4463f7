"""The forest plot of a method's paired differences from others of the atlas, as wide as a column of a paper."""

import textwrap
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from plumbline.analysis.atlas.standing import Difference
from plumbline.analysis.comparisons.effects import ALL
from plumbline.analysis.outputs import marks, style
from plumbline.core.errors import PlumblineError
from plumbline.study.legends import Legend

WIDTH = 3.3
"""Of a column, in inches."""

LINE = 0.28
"""Height of a task, in inches."""

LONGEST = 20
"""Letters in a line of a task's title."""

SPREAD = 0.6
"""Share of the height of a line that its dots take."""


FORMATS = ("pdf", "svg", "png")
"""Formats of the figure."""


def forest(
    differences: Sequence[Difference], mine: str, titles: Mapping[str, str], legends: Mapping[str, Legend]
) -> Figure:
    """Return a figure with one line per task, the mean over tasks last, and one dot per method with its 95% interval.

    Args:
        differences: as `standing.paired_differences` returns them.
        mine: one's own method.
        titles: of tasks; one without a title goes by its name.
        legends: of the other methods; one without a legend goes by its name.
    """
    there = [one for one in differences if np.isfinite(one.difference)]
    lines = [*dict.fromkeys(one.task for one in there if one.task != ALL), ALL]
    styles = style.method_styles(legends, dict.fromkeys(one.against for one in there))
    steps = (np.arange(len(styles)) - (len(styles) - 1) / 2) * SPREAD / max(len(styles), 1)
    figure, ax = plt.subplots(figsize=(WIDTH, 0.9 + LINE * len(lines)), layout="constrained")
    drawn: list[marks.Extent] = []
    for (other, its), step in zip(styles.items(), steps, strict=True):
        of = [one for one in there if one.against == other]
        value, low, high = np.array([(one.difference, one.low, one.high) for one in of]).reshape(-1, 3).T
        at = np.array([lines.index(one.task) + step for one in of])
        ax.errorbar(
            value,
            at,
            xerr=np.nan_to_num([value - low, high - value], nan=0.0, posinf=1e3),
            color=its.colour,
            **its.points,
            linestyle="none",
            markersize=3,
            elinewidth=0.9,
            label=style.legend_entry(legends[other].label if other in legends else other),
        )
        ends = zip(at, low, high, strict=True)
        drawn += [marks.interval(ax, *end, colour=its.colour, sideways=True) for end in ends]
    ax.axvline(0, color="0.5", linestyle=":", linewidth=0.8)
    ax.axhline(len(lines) - 1.5, color="0.8", linewidth=0.8)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    reach = _reach(there)
    ax.set_xlim(-reach, reach)
    ax.set_yticks(range(len(lines)), [textwrap.fill(titles.get(one, one), LONGEST) for one in lines])
    ax.tick_params(labelsize=7)
    marks.mark_cuts(drawn)
    what = f"difference of scores: {mine} minus the other method\nmean and 95% interval; below 0 {mine} is better"
    figure.supxlabel(what, fontsize=7)
    figure.legend(loc="outside upper center", ncols=2, fontsize=7, title="compared with", title_fontsize=7)
    return figure


def _reach(differences: Sequence[Difference]) -> float:
    """Return half the width of the axis, which all dots are within, and most intervals: of few seeds some are long."""
    ends = np.abs([end for one in differences for end in (one.low, one.high) if np.isfinite(end)])
    dots = max((abs(one.difference) for one in differences), default=0.0)
    return max(1.1 * dots, 1.2 * float(np.quantile(ends, 0.8)) if len(ends) else 0.0) or 1.0


def format_of(path: Path) -> str:
    """Return the format that the suffix of a figure's file stands for.

    Raises:
        PlumblineError: none.
    """
    kind = path.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        allowed = ", ".join(f".{one}" for one in FORMATS)
        raise PlumblineError(f"figure {path}: its suffix is no format: name it {allowed}")
    return kind


def forest_file(
    kind: str,
    differences: Sequence[Difference],
    mine: str,
    titles: Mapping[str, str],
    legends: Mapping[str, Legend],
) -> bytes:
    """Return the figure of `forest` as a file of a format of `FORMATS`."""
    content = BytesIO()
    with style.house_style():
        figure = forest(differences, mine, titles, legends)
        try:
            figure.savefig(content, format=kind, metadata=style.UNDATED.get(kind), bbox_inches=None)
        finally:
            plt.close(figure)
    return content.getvalue()
