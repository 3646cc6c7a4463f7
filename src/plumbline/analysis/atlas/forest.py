"""The forest plot of a method's paired differences from others of the atlas, as wide as a column of a paper."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from plumbline.analysis.atlas.standing import Difference
from plumbline.analysis.comparisons.effects import ALL
from plumbline.analysis.outputs import style
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic

WIDTH = 3.3
"""Of a column, in inches."""

LINE = 0.28
"""Height of a task, in inches."""

LONGEST = 20
"""Letters in a line of a task's title."""

SPREAD = 0.6
"""Share of the height of a line that its dots take."""


METADATA: Mapping[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
"""Formats of the figure, without a date: two drawings of the same differences are the same file."""


def forest(differences: Sequence[Difference], mine: str, titles: Mapping[str, str]) -> Figure:
    """Return a figure with a line a task, the mean over tasks last, and a dot with its 95% interval a method.

    Args:
        differences: as `standing.paired_differences` returns them.
        mine: one's own method.
        titles: of tasks; one without a title goes by its name.
    """
    there = [one for one in differences if np.isfinite(one.difference)]
    lines = [*dict.fromkeys(one.task for one in there if one.task != ALL), ALL]
    colours = style.colours(dict.fromkeys(one.against for one in there))
    steps = (np.arange(len(colours)) - (len(colours) - 1) / 2) * SPREAD / max(len(colours), 1)
    figure, ax = plt.subplots(figsize=(WIDTH, 0.9 + LINE * len(lines)), layout="constrained")
    for (other, colour), step in zip(colours.items(), steps, strict=True):
        of = [one for one in there if one.against == other]
        value, low, high = np.array([(one.difference, one.low, one.high) for one in of]).reshape(-1, 3).T
        ax.errorbar(
            value,
            [lines.index(one.task) + step for one in of],
            xerr=np.nan_to_num([value - low, high - value], nan=0.0, posinf=1e3),
            color=colour,
            linestyle="none",
            marker="o",
            markersize=3,
            elinewidth=0.9,
            label=style.legend_entry(f"less {other}"),
        )
    ax.axvline(0, color="0.5", linestyle=":", linewidth=0.8)
    ax.axhline(len(lines) - 1.5, color="0.8", linewidth=0.8)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    reach = _reach(there)
    ax.set_xlim(-reach, reach)
    ax.set_yticks(range(len(lines)), [textwrap.fill(titles.get(one, one), LONGEST) for one in lines])
    ax.tick_params(labelsize=7)
    figure.supxlabel(f"difference of scores; below 0 {mine} is better", fontsize=7)
    figure.legend(loc="outside upper center", ncols=2, fontsize=7)
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
    if kind not in METADATA:
        allowed = ", ".join(f".{one}" for one in METADATA)
        raise PlumblineError(f"figure {path}: its suffix is no format: name it {allowed}")
    return kind


def write_forest(path: Path, differences: Sequence[Difference], mine: str, titles: Mapping[str, str]) -> None:
    """Write the figure in the format of the file's suffix.

    Raises:
        PlumblineError: the suffix is no format.
    """
    kind = format_of(path)
    with style.house_style():
        figure = forest(differences, mine, titles)
        try:
            with atomic(path) as part:
                figure.savefig(part, format=kind, metadata=METADATA[kind], bbox_inches=None)
        finally:
            plt.close(figure)
