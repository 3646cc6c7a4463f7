"""Small-sample rates: how often as few of our seeds as a paper has are on the claimed side."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from plumbline.analysis.outputs import style
from plumbline.analysis.verdicts.verdict import by_number
from plumbline.core.files import atomic
from plumbline.study.verdicts import with_shape

ALIKE = "if methods were alike (no tick: the test does not compare two methods)"

ROOM = 0.09
"""What a number takes of the axis."""

COLUMNS = {"seeds": 1.07, "verdict with our seeds": 1.33}
"""What is written beside the bars, and where."""

LETTERS = 46
"""In a line of a test's name, at most."""


def in_percent(share: float) -> str:
    """Return a share in words: what is not zero is not called so."""
    return "below 1%" if 0 < share < 0.01 else f"{100 * share:.0f}%"


def small_samples(claims: pd.DataFrame, order: Sequence[str] = ()) -> pd.DataFrame:
    """Return the claims of papers with few seeds, one row per claim: name, tested quantity, both numbers of seeds,
    `pattern`, `chance`, `favourable` (the least of the parts of the primary test) and verdict.

    Args:
        claims: a table of claims.
        order: claims in the order of their papers, which are told by the letters of the names; others go last.
    """
    papers = list(dict.fromkeys(by_number(name)[0] for name in order))

    def place(name: str) -> tuple[int, tuple[str, int]]:
        letters = by_number(name)[0]
        return papers.index(letters) if letters in papers else len(papers), by_number(name)

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
    return found.loc[sorted(found.index, key=place)].reset_index()


def draw_small_samples(found: pd.DataFrame) -> Figure:
    """Draw one bar per claim, as long as the share of small samples that look as claimed, in the colour of our verdict.

    A tick is where the bar would end if methods were alike: there is none where a test does not compare two of them.
    Beside a bar are the numbers of seeds, the paper's of ours, and the verdict.
    """
    figure, ((ax,),) = style.panels(1, 1)
    labels = [textwrap.fill(f"{one.claim}: {one.test}", LETTERS, break_on_hyphens=False) for one in found.itertuples()]
    figure.set_size_inches(0.8 * style.WIDEST, 0.9 + sum(0.17 + 0.16 * (1 + label.count("\n")) for label in labels))
    verdicts = found["verdict"].astype(str).tolist()
    seeds = [f"{few} of {many}" for few, many in found[["paper_seeds", "seeds"]].itertuples(index=False, name=None)]
    for row, (share, alike) in enumerate(found[["pattern", "chance"]].to_numpy(dtype=float)):
        ax.barh(row, share, 0.62, color=style.verdict_colour(verdicts[row]))
        # At the bar's end, or beyond the tick where that stands there.
        end = alike if 0 <= alike - share < ROOM else share
        ax.text(end + 0.015, row, in_percent(share), va="center", fontsize=8)
        for place, words in zip(COLUMNS.values(), (seeds[row], with_shape(verdicts[row])), strict=True):
            ax.text(place, row, words, va="center", fontsize=8)
    for words, place in COLUMNS.items():
        ax.text(place, -0.7, words, va="center", fontsize=8, color="0.35")
    ax.scatter(found["chance"], found.index, s=90, c="black", marker="|", label=ALIKE, zorder=3)
    ax.set_yticks(range(len(found)), labels)
    ax.set_ylim(len(found) - 0.5, -0.5)
    ax.set_xlim(0, 1.04)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    ax.set_xlabel("share of small samples that look as claimed")
    style.add_legend(figure)
    return figure


def write_small_samples(claims: pd.DataFrame, path: Path, order: Sequence[str] = ()) -> None:
    """Write the figure, a PNG; nothing where no claim has few seeds and more of ours. `order`: see `small_samples`."""
    found = small_samples(claims, order)
    if found.empty:
        return
    with style.house_style(), atomic(path) as part:
        draw_small_samples(found).savefig(part, format="png")
