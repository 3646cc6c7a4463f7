"""The study's answer in one figure: does better uncertainty make forecasts more honest, and does it find more?

Each point compares a method with the same method under plain uncertainty, paired by seed: a test of `claims.csv`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from plumbline.analysis.outputs import style
from plumbline.core.files import atomic
from plumbline.store.reference_files import ANSWER

COMPARING = ("difference", "distance-difference", "ratio")
"""Statistics of one method against another."""

PAPERS = {
    "calibrated": r"calibrated-(\w+) - \1-ml",
    "conformal": r"c(\S+) - \1|conformal-oracle - credible",
    "localised\nonline conformal": r"\w*bo\S* - bo",
    "approximation-\naware": r"(?P<region>tr-|)eulbo(?P<rest>\S*) - (?P=region)elbo(?P=rest)",
}
"""Method and baseline that differ in their uncertainty alone, a paper each."""

SEARCH = {"best_f": -1, "incumbent_f": -1, "hypervolume": -1, "regret": 1, "incumbent_regret": 1, "ranking_regret": 1}
"""Metrics of what a search finds: 1 where less is better, -1 where greater is."""

CALIBRATION = {"calibration_score": 1, "query_coverage": 1, "query_coverage_gap": 1, "holdout_coverage_gap": 1}
"""Metrics of forecasts; of coverage only its distance to the level is compared (`distance-difference`)."""

PANELS = {"Are its forecasts\nbetter calibrated?": CALIBRATION, "Does it find\nbetter values?": SEARCH}

REACH = 2.5
"""End of the axis, in standard deviations; estimates beyond it are drawn there, as arrows."""

LIMITS = (-REACH - 0.25, REACH + 1.6)
"""Of the axis, with room for the counts."""

COUNTS = LIMITS[1] - 2.4
"""Where on the axis the counts begin."""

LEAST_ROWS, GAP = 9, 2
"""Of a group of points: how high it is at least, and how far from the next, in points."""


class Finding(NamedTuple):
    """What a comparison finds, and how it is drawn: by colour and by shape."""

    words: str
    colour: str
    marker: str
    filled: bool


BETTER = Finding("better", "blue", "D", True)
OPEN = Finding("undecided", "grey", "o", False)
WORSE = Finding("worse", "red", "s", True)
FINDINGS = (BETTER, OPEN, WORSE)


def comparisons(claims: pd.DataFrame, same_methods: Mapping[str, str]) -> pd.DataFrame:
    """Return the comparisons of methods that differ in their uncertainty alone, by paper, panel and estimate.

    The columns are `paper`, `panel`, `seeds`, and `estimate`, `low` and `high` in standard deviations of a seed's
    difference, negative where better uncertainty does better, as in the figure of the atlas. A pair on a task appears
    once, by the primary test where there is one, whatever its methods are called. Tests whose interval is infinite, as
    with three seeds, are left out.

    Args:
        claims: a table of claims.
        same_methods: one name for methods that differ in their names alone; a name that is not in it is its own.
    """
    numbers = ["ours", "low", "high", "seeds", "deviation"]
    rows = one_against_another(claims).astype(dict.fromkeys(numbers, float))
    rows = rows[np.isfinite(rows["high"] - rows["low"])]
    rows = rows.sort_values("role", key=lambda roles: roles != "primary", kind="stable")

    def named(pair: str) -> str:
        return " - ".join(same_methods.get(name, name) for name in pair.split(" - "))

    found = []
    for paper, pairs in PAPERS.items():
        of_paper = rows[rows["pair"].map(re.compile(pairs).fullmatch).notna()]
        for panel, signs in PANELS.items():
            kept = of_paper[of_paper["metric"].isin(signs)]
            if signs is CALIBRATION:
                kept = kept[(kept["metric"] == "calibration_score") | (kept["statistic"] == "distance-difference")]
            kept = kept[~kept.assign(pair=kept["pair"].map(named)).duplicated(["pair", "task"])]
            shown = standardised(kept, kept["metric"].map(signs).astype(float))
            found.append(shown.assign(seeds=kept["seeds"].astype(int), paper=paper, panel=panel))
    return pd.concat(found, ignore_index=True)


def one_against_another(claims: pd.DataFrame) -> pd.DataFrame:
    """Return the tests of whole runs of one method against another on one task, with its `pair` and its `task`."""
    alone = claims["statistic"].isin(COMPARING) & (claims["of"] != "median") & claims["after"].isna()
    alone &= (claims["baseline"] != "") & (claims["baseline_task"] == "") & ~claims["tasks"].str.contains(" ")
    rows = claims[alone]
    return rows.assign(pair=rows["method"] + " - " + rows["baseline"], task=rows["tasks"])


def standardised(rows: pd.DataFrame, signs: pd.Series) -> pd.DataFrame:
    """Return `estimate`, `low` and `high` of tests in standard deviations of a seed, the greatest estimate first.

    Where all seeds agree there is none, and the estimate is its sign at the end of the axis.

    Args:
        rows: of a table of claims.
        signs: 1 where a smaller number is better, -1 where a greater one is.
    """
    null = (rows["statistic"] == "ratio").astype(float)
    spread = rows["deviation"]
    ends = {}
    for name in ("ours", "low", "high"):
        away = signs * (rows[name] - null)
        ends[name] = (away / spread).where(spread > 0, REACH * np.sign(away))
    low, high = np.minimum(ends["low"], ends["high"]), np.maximum(ends["low"], ends["high"])
    return pd.DataFrame({"estimate": ends["ours"], "low": low, "high": high}).sort_values(
        "estimate", ascending=False, kind="stable"
    )


def intervals(found: pd.DataFrame) -> NDArray[np.float64]:
    """Return estimates with their intervals: `n x 3`."""
    return found[["estimate", "low", "high"]].to_numpy(dtype=float)


def finding(low: float, high: float) -> Finding:
    """Return the finding of a comparison with this 95% interval."""
    if high < 0:
        return BETTER
    return WORSE if low > 0 else OPEN


def answer_in_words(found: pd.DataFrame) -> list[str]:
    """Return how many comparisons find what, a sentence a panel.

    Args:
        found: as `comparisons` returns them.
    """
    counts = []
    for panel in PANELS:
        words = [finding(low, high).words for _, low, high in intervals(found[found["panel"] == panel])]
        counts.append((len(words), *(words.count(one.words) for one in (BETTER, WORSE, OPEN))))
    (forecasts, calibrated, worse, _), (searches, better, less, undecided) = counts
    return [
        f"Forecasts are better calibrated in {calibrated} of {forecasts} comparisons, and worse in {worse}.",
        f"BO finds better values in {better} of {searches} and worse ones in {less}; in {undecided} we find no "
        "significant difference.",
    ]


def draw_answer(found: pd.DataFrame) -> Figure:
    """Draw the comparisons, one panel per question and one group of points per paper, with their counts.

    Args:
        found: as `comparisons` returns them.
    """
    figure, (axes,) = style.panels(1, len(PANELS), sharey=True)
    figure.set_size_inches(6.8, 5.2)
    sizes = found.groupby(["paper", "panel"]).size().groupby("paper").max()
    heights = [max(int(sizes.get(paper, 0)), LEAST_ROWS) + GAP for paper in PAPERS]
    edges = np.cumsum([0, *heights])
    middles = (edges[:-1] + edges[1:]) / 2
    for ax, panel in zip(axes, PANELS, strict=True):
        for paper, middle, bottom in zip(PAPERS, middles, edges[1:], strict=True):
            some = found[(found["paper"] == paper) & (found["panel"] == panel)]
            draw_group(ax, some, middle)
            write_counts(ax, some, bottom)
        ax.hlines(edges[1:-1], *LIMITS, color="0.85", linewidth=0.8)
        ax.axvline(0, color="0.2", linewidth=0.9, zorder=0)
        ax.set_title(panel, fontsize=13, weight="bold")
        ax.set_xlim(LIMITS)
        ax.set_xticks([-2, -1, 0, 1, 2])
        ax.tick_params(axis="x", labelsize=10)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set_xlabel("better  ←   difference   →  worse", fontsize=11)
    axes[0].set_ylim(edges[-1], 0)
    axes[0].set_yticks(middles, list(PAPERS), fontsize=12)
    few, many = found["seeds"].min(), found["seeds"].max()
    figure.supxlabel(
        "difference from the plain method in standard deviations of one seed's difference:\n"
        f"estimate and 95% interval over {few} to {many} seeds",
        fontsize=9.5,
        color="0.3",
    )
    return figure


def draw_group(ax: Axes, some: pd.DataFrame, middle: float) -> None:
    """Draw comparisons below one another around `middle`, each with its interval."""
    if some.empty:
        ax.text(
            0,
            middle,
            "no test against\nthe plain method",
            ha="center",
            va="center",
            color="0.35",
            fontsize=11,
            backgroundcolor="w",
        )
    places = middle + np.arange(len(some)) - (len(some) - 1) / 2
    for place, (estimate, low, high) in zip(places, intervals(some), strict=True):
        of = finding(low, high)
        colour = style.colour(of.colour)
        beyond = "<" if estimate < 0 else ">"
        ax.plot(np.clip([low, high], -REACH, REACH), [place, place], color=colour, linewidth=1.0, alpha=0.6)
        ax.plot(
            np.clip(estimate, -REACH, REACH),
            place,
            of.marker if abs(estimate) <= REACH else beyond,
            color=colour,
            markerfacecolor=colour if of.filled else "white",
            markersize=4.2,
        )


def write_counts(ax: Axes, some: pd.DataFrame, bottom: float) -> None:
    """Write how many comparisons find what, above `bottom` at the right, where the best ones leave room."""
    found = [finding(low, high) for _, low, high in intervals(some)]
    said = [(of, found.count(of)) for of in FINDINGS if of in found]
    for line, (of, count) in enumerate(reversed(said)):
        place = bottom - 1.5 - 2.7 * line
        colour = style.colour(of.colour)
        face = colour if of.filled else "white"
        ax.plot(COUNTS, place, of.marker, color=colour, markerfacecolor=face, markersize=5, clip_on=False)
        # Intervals may reach behind the words.
        behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.5}
        ax.text(COUNTS + 0.25, place, f"{count} {of.words}", va="center", fontsize=10, bbox=behind)


def write_answer(claims: pd.DataFrame, folder: Path, same_methods: Mapping[str, str]) -> None:
    """Write the figure to `answer.png` and `answer.svg` in a folder; nothing where nothing was compared.

    Args:
        claims: a table of claims.
        folder: of the reference results.
        same_methods: as in `comparisons`.
    """
    found = comparisons(claims, same_methods)
    if found.empty:
        return
    with style.house_style():
        figure = draw_answer(found)
        for kind in ("png", "svg"):
            with atomic(folder / f"{ANSWER}.{kind}") as part:
                figure.savefig(part, format=kind, metadata=style.UNDATED.get(kind))
