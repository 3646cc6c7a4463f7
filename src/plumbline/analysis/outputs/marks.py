"""Marks of what a panel does not show: intervals at the ends of lines, beside it, and what its limits cut off."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from plumbline.analysis.outputs.style import MethodStyle

Array = NDArray[np.float64]

EVERY, MARKER = 5, 4.0
"""How many markers a line has, and their size in points."""

STRIP = 0.03
"""Width of an interval beside a panel, as a share of the panel's."""


class Extent(NamedTuple):
    """What was drawn of one thing: `n` places along the axis, with its lowest and highest value at each.

    `sideways`, places are on the vertical axis and values along the horizontal one.
    """

    ax: Axes
    at: Array
    low: Array
    high: Array
    colour: str
    sideways: bool = False


def interval(ax: Axes, at: float, low: float, high: float, colour: str, sideways: bool = False) -> Extent:
    """Return the extent of one interval."""
    return Extent(ax, np.array([at]), np.array([low]), np.array([high]), colour, sideways)


def draw_line(ax: Axes, x: Array, y: Array, its: MethodStyle, place: int, count: int, **options: Any) -> None:
    """Draw one of `count` lines with markers, each at other places: where lines coincide, all of their markers show.

    Args:
        ax: where to; its scales are those it keeps, for a line is straight between its points on them.
        x: increasing, `n`.
        y: `n`.
        its: style.
        place: of the line among the others.
        count: of lines.
        options: of the line, for matplotlib.
    """
    # The line knows its marker for the legend, and has none at its own points.
    ax.plot(x, y, **its.line, **its.points, markersize=MARKER, markevery=[], **options)
    at = x[0] + (x[-1] - x[0]) * (np.arange(EVERY) + (place + 0.5) / count) / EVERY
    scale = ax.yaxis.get_transform()
    on_it = scale.inverted().transform(np.interp(at, x, scale.transform(y)))
    ax.scatter(at, on_it, MARKER**2, **its.filled, zorder=2.5)


NO_VALUE, NOT_RUN = "none of the methods\nhas a value here", "none of the methods of this row\nwas run here"
"""Why a panel is empty."""


def say(ax: Axes, words: str, height: float = 0.5) -> None:
    """Write words in the middle of a panel that shows little or nothing, at a share of its height."""
    ax.text(0.5, height, words, transform=ax.transAxes, ha="center", va="center", fontsize=8, color="0.35")


def draw_level(ax: Axes, value: float, its: MethodStyle, place: int, count: int, label: str) -> None:
    """Draw one of `count` lines across a panel, with markers as `draw_line` has them."""
    across = ax.get_yaxis_transform()
    marks = {**its.points, "markersize": MARKER, "markevery": []}
    ax.plot([0, 1], [value, value], **its.line, **marks, transform=across, linewidth=1.2, label=label)
    at = (np.arange(EVERY) + (place + 0.5) / count) / EVERY
    ax.scatter(at, np.full(EVERY, value), MARKER**2, **its.filled, transform=across, zorder=2.5)


def draw_ends(ax: Axes, ends: Sequence[tuple[MethodStyle, float, float, float]]) -> list[Extent]:
    """Draw intervals side by side in a strip to the right of a panel, whose axis has no place for them.

    Args:
        ax: the panel.
        ends: style, low end, middle and high end of each; nothing is drawn of those that are NaN.
    """
    strip = ax.inset_axes((1.02, 0.0, STRIP * len(ends), 1.0), sharey=ax)
    strip.set_xlim(-0.5, len(ends) - 0.5)
    strip.axis("off")
    drawn = []
    for place, (its, low, middle, high) in enumerate(ends):
        if np.isfinite([low, high]).all():
            strip.vlines(place, low, high, color=its.colour, linewidth=1.6)
            strip.plot(place, middle, color=its.colour, **its.points, markersize=3.5)
            drawn.append(interval(strip, place, low, high, its.colour))
    return drawn


ARROWS = {("low", True): "←", ("low", False): "↓", ("high", True): "→", ("high", False): "↑"}
"""Arrows at the lower and the upper edge of an axis, by whether it is the horizontal one."""


def mark_cuts(drawn: Iterable[Extent]) -> None:
    """Put an arrow at each edge of a panel that cuts something off, where that goes out or comes in."""
    for one in drawn:
        low, high = sorted(one.ax.get_xlim() if one.sideways else one.ax.get_ylim())
        slack = 1e-6 * (high - low)
        for end, beyond in (("low", one.low < low - slack), ("high", one.high > high + slack)):
            if beyond.any():
                _put_arrow(one, float(one.at[_where_it_leaves(beyond)]), end)


def _where_it_leaves(beyond: NDArray[np.bool_]) -> int:
    """Return the first place outside the limits beside one within, or the first of all."""
    leaves = np.flatnonzero(beyond[1:] != beyond[:-1])
    return int(leaves[0] + beyond[leaves[0] + 1]) if len(leaves) else 0


def _put_arrow(one: Extent, at: float, end: str) -> None:
    edge = float(end == "high")
    inwards = {"low": "left", "high": "right"}[end] if one.sideways else {"low": "bottom", "high": "top"}[end]
    one.ax.text(
        *((edge, at) if one.sideways else (at, edge)),
        ARROWS[end, one.sideways],
        transform=one.ax.get_yaxis_transform() if one.sideways else one.ax.get_xaxis_transform(),
        color=one.colour,
        ha=inwards if one.sideways else "center",
        va="center" if one.sideways else inwards,
        fontsize=9,
        zorder=5,
    )
