"""A page on one's own method among those of the atlas: one HTML file with its figure, which needs no network."""

import base64
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from plumbline.analysis.atlas.paragraph import Protocol, bibtex, methods_text
from plumbline.analysis.atlas.standing import MEASURED, Difference
from plumbline.analysis.comparisons.numbers import interval, probability, short
from plumbline.analysis.publish.pages import html_environment, template_text


def terms(compared: int) -> list[str]:
    """Return a line on each term of the tables, where one's own method is compared with so many others."""
    return [
        "score: share of the initial regret that is left, mean over rounds; final: after the last round",
        "rank: by the mean score over tasks; in brackets its 95% interval, by a bootstrap over tasks",
        "difference: below 0 yours is better; paired by seed, and over all tasks by task; intervals: 95%",
        f"p: two-sided; Holm: corrected for {compared} methods",
        "seconds: fit and search of a round, those on file on another machine",
    ]


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
        notes: lines on what is not as on file, and on trials that failed.
        citation: the file `CITATION.cff`.
    """
    environment = html_environment()
    environment.filters |= {"short": short, "interval": lambda ends: interval(*ends), "p": probability}
    return environment.from_string(template_text("bench.html.j2")).render(
        mine=mine,
        protocol=protocol,
        place=standing.set_index("method").loc[mine].to_dict(),
        standing=standing.to_dict("records"),
        measured=MEASURED,
        differences=differences,
        forest=base64.b64encode(forest).decode("ascii"),
        notes=notes,
        terms=terms(len(protocol.against)),
        text=methods_text(protocol),
        bibtex=bibtex(citation, protocol.edition),
    )
