"""A page on one's own method among those of the atlas: one HTML file with its figure, which needs no network."""

import base64
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from plumbline.analysis.atlas.citations import bibtex
from plumbline.analysis.atlas.paragraph import Protocol, methods_text
from plumbline.analysis.atlas.standing import MEASURED, Difference
from plumbline.analysis.comparisons.effects import ALL
from plumbline.analysis.comparisons.numbers import interval, intervals_in_words, probability, short
from plumbline.analysis.publish.pages import html_environment, template_text
from plumbline.core.words import counted


def terms(standing: pd.DataFrame, differences: Sequence[Difference], compared: int) -> list[str]:
    """Return a line on each term of the tables.

    Args:
        standing: as `standing.standing` returns it.
        differences: as `standing.paired_differences` returns them.
        compared: the number of methods that one's own is compared with.
    """
    told = "in brackets its 95% interval, from a bootstrap over tasks"
    ranked = told if standing["rank_low"].notna().any() else "an interval needs two tasks or more"
    return [
        "score: normalised regret (share of the initial regret that remains), mean over rounds; final: last round",
        f"rank: by the mean score over tasks; {ranked}",
        "difference: below 0 your method is better; mean over seeds for a task, and over task means for all tasks",
        intervals_in_words((one.low, one.high) for one in differences),
        f"p: two-sided; Holm: corrected for {counted(compared, 'method')}",
        "seconds: fit and search in each round; reference results are from another machine",
    ]


def mean_over(one: Difference) -> str:
    """Return what a difference is a mean over: seeds, or all tasks."""
    return counted(one.pairs, "task" if one.task == ALL else "seed")


def bench_page(
    mine: str,
    protocol: Protocol,
    standing: pd.DataFrame,
    differences: Sequence[Difference],
    forest: bytes,
    notes: Sequence[str],
    citation: Path,
) -> str:
    """Return the page.

    Args:
        mine: one's own method, as the tables call it.
        protocol: what was run.
        standing: as `standing.standing` returns it, with one's own method.
        differences: as `standing.paired_differences` returns them.
        forest: the figure of the differences, an SVG.
        notes: lines on what is not as in the atlas, and on trials that failed.
        citation: the file `CITATION.cff`.
    """
    environment = html_environment()
    environment.filters.update(short=short, interval=lambda ends: interval(*ends), p=probability, mean_over=mean_over)
    return environment.from_string(template_text("bench.html.j2")).render(
        mine=mine,
        protocol=protocol,
        place=standing.set_index("method").loc[mine].to_dict(),
        standing=standing.to_dict("records"),
        measured=MEASURED,
        differences=differences,
        forest=base64.b64encode(forest).decode("ascii"),
        notes=notes,
        terms=terms(standing, differences, len(protocol.against)),
        text=methods_text(protocol, citation),
        bibtex=bibtex(citation, protocol.edition, protocol.papers.values()),
    )
