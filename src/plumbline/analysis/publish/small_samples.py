"""Small-sample rates: how often as few of our seeds as a paper has are on the claimed side."""

from pathlib import Path
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from plumbline.analysis.outputs import style
from plumbline.analysis.verdicts.verdict import by_number
from plumbline.core.files import atomic
from plumbline.study.verdicts import VERDICTS, with_shape

ALIKE = "if methods were alike"
NO_TICK = "no tick: not of two methods"

ROOM = 0.13
"""What a number takes of the axis."""

WORDS = 42
"""Letters of a test's name, at most."""


def in_percent(share: float) -> str:
    """Return a share in words: what is not zero is not called so."""
    return "below 1%" if 0 < share < 0.01 else f"{100 * share:.0f}%"


def small_samples(claims: pd.DataFrame) -> pd.DataFrame:
    """Return the claims of papers with few seeds, a row a claim: name, tested quantity, both numbers of seeds,
    `pattern`, `chance`, `favourable` (the least of the parts of the primary test) and verdict.

    Args:
        claims: a table of claims.
    """
    primary = claims[(claims["role"] == "primary") & claims["pattern"].notna()]
    found = primary.groupby("claim", sort=False).agg(
        test=("test", "first"),
        seeds=("seeds", "min"),
        paper_seeds=("paper_seeds", "first"),
        pattern=("pattern", "first"),
        chance=("chance", "first"),
        favourable=("favourable", "min"),
        verdict=("verdict", "first"),
    )
    return found.loc[sorted(found.index, key=by_number)].reset_index()


def draw_small_samples(found: pd.DataFrame) -> Figure:
    """Draw a bar a claim, as long as the share of small samples that look as claimed, in the colour of our verdict.

    A tick is where the bar would end if methods were alike: there is none where a test does not compare two of them.
    """
    figure, ((ax,),) = style.panels(1, 1)
    figure.set_size_inches(2.1 * style.PANEL[0], 0.9 + 0.36 * len(found))
    for verdict in VERDICTS:
        rows = found.index[found["verdict"] == verdict]
        if len(rows):
            ax.barh(rows, found.loc[rows, "pattern"], 0.62, color=style.verdict_colour(verdict), label=verdict)
    ax.scatter(found["chance"], found.index, s=90, c="black", marker="|", label=ALIKE, zorder=3)
    for row, (share, alike) in enumerate(found[["pattern", "chance"]].itertuples(index=False, name=None)):
        # At the bar's end, or below it where the tick stands.
        words = in_percent(share) + ("" if np.isfinite(alike) else f" ({NO_TICK})")
        end = share + 0.015 if not 0 <= alike - share < ROOM else alike + 0.015
        ax.text(end, row, words, va="center", fontsize=8)
    labels = [
        f"{one.claim}: {shorten(str(one.test), WORDS, placeholder=' …')}  ({one.paper_seeds} of {one.seeds} seeds)"
        for one in found.itertuples()
    ]
    ax.set_yticks(range(len(found)), labels)
    ax.set_ylim(len(found) - 0.5, -0.5)
    ax.set_xlim(0, 1.06)
    ax.set_xlabel("share of small samples that look as claimed")
    handles, names = ax.get_legend_handles_labels()
    entries = [name if name == ALIKE else f"with our seeds: {with_shape(name)}" for name in names]
    figure.legend(handles, entries, loc="outside upper center", ncols=2)
    return figure


def write_small_samples(claims: pd.DataFrame, path: Path) -> None:
    """Write the figure to `path`, a PNG; nothing where no claim has few seeds and more of ours."""
    found = small_samples(claims)
    if found.empty:
        return
    with style.house_style(), atomic(path) as part:
        draw_small_samples(found).savefig(part, format="png")
