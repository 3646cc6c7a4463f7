"""The figure of the atlas: effects of the interventions on calibration and on normalised regret."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plumbline.analysis.atlas.interventions import INTERVENTIONS, PLACEBOS, Finding
from plumbline.analysis.comparisons.numbers import probability
from plumbline.analysis.outputs import style
from plumbline.core.files import atomic
from plumbline.store.reference_files import EditionFiles

PANELS = {
    "calibration_error": ("Are its forecasts\nbetter calibrated?", "difference in calibration error"),
    "score": ("Does it find\nbetter values?", "difference in normalised regret"),
}
"""The columns compared, each with its question and its axis label."""

ROWS = [one.words for one in (*INTERVENTIONS, *PLACEBOS)]

LABELS = [*(one.words for one in INTERVENTIONS), *(f"placebo: {one.words}" for one in PLACEBOS)]

WIDTH = 27
"""Of the labels of rows, in letters."""

TICKS = 4
"""Greatest number of spaces between the ticks of a panel: more of them run into each other."""

LOOKS = {-1: ("blue", "D"), 0: ("grey", "o"), 1: ("red", "s")}
"""Colour and marker of differences significantly below zero, not significant (hollow), and significantly above."""

KEY = "filled: p < .05 after correction or, without a test, an interval that excludes 0"


def draw(findings: Sequence[Finding], footer: str) -> Figure:
    """Draw the differences of calibration errors and of scores, one row per intervention, placebos below a line.

    Args:
        findings: of `interventions.primary` and `beside`; those about a part of the tasks are left out.
        footer: a line on the data behind them.
    """
    by_place = {(one.of, one.analysis): one for one in findings if not one.where}
    figure, (axes,) = style.panels(1, len(PANELS), sharey=True)
    figure.set_size_inches(7.4, 4.6)
    for ax, (of, (question, words)) in zip(axes, PANELS.items(), strict=True):
        for place, row in enumerate(ROWS):
            draw_row(ax, place, by_place.get((of, row)))
        ax.axvline(0, color="0.2", linewidth=0.9, zorder=0)
        ax.axhline(len(INTERVENTIONS) - 0.5, color="0.8", linewidth=0.8)
        ax.set_title(question, fontsize=13, weight="bold")
        ax.set_xlabel(f"{words}\nbetter  ←   →  worse")
        ax.tick_params(axis="y", length=0)
        ax.xaxis.set_major_locator(MaxNLocator(TICKS))
        ax.spines["left"].set_visible(False)
    write_probabilities(axes[-1], [by_place.get(("score", row)) for row in ROWS])
    axes[0].set_yticks(range(len(ROWS)), [fill(label, WIDTH) for label in LABELS])
    axes[0].set_ylim(len(ROWS) - 0.5, -0.5)
    figure.supxlabel(f"{footer}\n{KEY}", fontsize=8, color="0.4")
    return figure


def draw_row(ax: Axes, place: int, one: Finding | None) -> None:
    """Draw a difference with its interval; nothing where there is none."""
    if one is None or isnan(one.value):
        return
    colour, marker = LOOKS[one.direction]
    ends = [one.low, one.high] if np.isfinite([one.low, one.high]).all() else [one.value] * 2
    ax.plot(ends, [place, place], color=style.colour(colour), linewidth=1.6)
    face = style.colour(colour) if one.direction else "white"
    ax.plot(one.value, place, marker, color=style.colour(colour), markerfacecolor=face, markersize=6)


def write_probabilities(ax: Axes, findings: Sequence[Finding | None]) -> None:
    """Write the corrected probabilities to the right of a panel, a row each."""
    beside: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": 9, "color": "0.3"}
    ax.text(1.04, -0.8, "p (Holm)", **beside)
    for place, one in enumerate(findings):
        if one is not None and not isnan(one.p_corrected):
            ax.text(1.04, place, probability(one.p_corrected), **beside)


def write_figure(findings: Sequence[Finding], footer: str, folder: Path) -> None:
    """Write the picture to `interventions.png` and `interventions.svg` in a folder."""
    with style.house_style():
        figure = draw(findings, footer)
        for kind in ("png", "svg"):
            with atomic(EditionFiles(folder).figure(kind)) as part:
                figure.savefig(part, format=kind, bbox_inches="tight", metadata=style.UNDATED.get(kind))
