"""Illustrations in figures: their series, and unions of intervals along a line, cut at the axis where unbounded."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from plumbline.analysis.outputs.style import tint
from plumbline.core.errors import PlumblineError


def series(table: pd.DataFrame, panel: str, name: str) -> pd.DataFrame:
    """Return the rows of one series of an illustration.

    Raises:
        PlumblineError: the panel has no such series.
    """
    chosen = table[(table["panel"] == panel) & (table["series"] == name)] if len(table) else table
    if chosen.empty:
        raise PlumblineError(f"no {name!r} in panel {panel!r}: is the figure of another kind than the illustration?")
    return chosen


def draw_sets(ax: Axes, sets: pd.DataFrame, limits: tuple[float, float], colour: str, label: str) -> float:
    """Draw unions of intervals, a bar an interval; what is cut at the limits is marked, what is the whole line hatched.

    Args:
        ax: where to.
        sets: rows with `x`, `low` and `high`, at equidistant `x`.
        limits: of the vertical axis.
        colour: of the sets.
        label: what the legend calls them.

    Returns:
        The share of `x` where the set is the whole line.
    """
    places = np.unique(sets["x"])
    width = float(np.diff(places).min()) if len(places) > 1 else 1.0
    low, high = sets["low"].clip(lower=limits[0]), sets["high"].clip(upper=limits[1])
    whole = np.isneginf(sets["low"]) & np.isposinf(sets["high"])
    colours = [tint(colour, 0.12 if unbounded else 0.25) for unbounded in whole]
    # Edges of the colour of the bars close the seams between them.
    ax.bar(sets["x"], high - low, width, low, color=colours, edgecolor=colours, linewidth=0.4, zorder=1)
    ax.fill_between([], [], color=tint(colour), label=label)
    if whole.any():
        _mark_whole_line(ax, sets.loc[whole, "x"].to_numpy(), width, limits, colour)
    _mark_cuts(ax, sets[~whole], width, limits, colour)
    ax.set_ylim(*limits)
    return float(whole.sum() / len(places))


def draw_union(ax: Axes, intervals: pd.DataFrame, height: float, colour: str, label: str) -> None:
    """Draw a union of intervals of a horizontal axis as strong lines at `height`, to its limits where unbounded."""
    left, right = ax.get_xlim()
    low, high = intervals["low"].clip(lower=left), intervals["high"].clip(upper=right)
    ax.hlines([height] * len(intervals), low, high, colors=colour, linewidth=4, label=label)
    ax.set_xlim(left, right)


def _mark_cuts(ax: Axes, sets: pd.DataFrame, width: float, limits: tuple[float, float], colour: str) -> None:
    """Draw a strong line along the limits that intervals go on beyond."""
    for limit, beyond in ((limits[0], sets["low"] < limits[0]), (limits[1], sets["high"] > limits[1])):
        if beyond.any():
            x = sets.loc[beyond, "x"]
            ax.hlines(
                [limit] * len(x),
                x - width / 2,
                x + width / 2,
                colors=colour,
                linewidth=3,
                label="goes on beyond the axis",
                clip_on=False,
                zorder=4,
            )


def _mark_whole_line(ax: Axes, x: np.ndarray, width: float, limits: tuple[float, float], colour: str) -> None:
    """Hatch each run of neighbouring places whose set is the whole line, and say what that means on the widest."""
    runs = np.split(x, np.flatnonzero(np.diff(x) > 1.5 * width) + 1)
    for run in runs:
        ax.fill_between(
            [run[0] - width / 2, run[-1] + width / 2],
            *limits,
            facecolor="none",
            edgecolor=tint(colour, 0.5),
            hatch="////",
            linewidth=0,
            zorder=1.1,
        )
    widest = max(runs, key=len)
    ax.text(
        (widest[0] + widest[-1]) / 2,
        limits[0] + 0.06 * (limits[1] - limits[0]),
        "whole line",
        ha="center",
        va="bottom",
        fontsize=7,
        color="0.2",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        zorder=5,
    )
