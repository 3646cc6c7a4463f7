"""The page of a method of one's own."""

import re

import pandas as pd
from markupsafe import escape

from plumbline.analysis.atlas.paragraph import Protocol
from plumbline.analysis.atlas.standing import MEASURED, Difference
from plumbline.analysis.comparisons.effects import ALL
from plumbline.analysis.publish.bench_page import bench_page, terms
from plumbline.api.repository import find_repository

PROTOCOL = Protocol("Mine", ["ei"], {}, [], ["Branin", "Rover"], [(10, 50)], 5, (5, 5), "2026.12", {"botorch": "0.1"})


DIFFERENCES = [
    Difference("ei", ALL, 2, 0.25, float("-inf"), float("inf"), 0.5, 0.5),
    Difference("ei", "branin", 5, 0.25, 0.125, 0.375, 0.0001),
]


def standing(mine: str) -> pd.DataFrame:
    """Return the places of two methods."""
    columns = ["method", "rank", "rank_low", "rank_high", *MEASURED]
    rows = [("ei", 1, 1.0, 2.0, 0.25, 0.1, float("nan"), 0.01), (mine, 2, 1.0, 2.0, 0.5, 0.2, 0.125, 0.02)]
    return pd.DataFrame(rows, columns=columns)


def page(mine: str, notes: tuple[str, ...] = ()) -> str:
    citation = find_repository() / "CITATION.cff"
    return bench_page(mine, PROTOCOL, standing(mine), DIFFERENCES, b"<svg/>", notes, citation)


def test_all_is_on_the_page() -> None:
    text = page("Mine", ("one note",))
    rows = [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr.*?</tr>", text)]
    assert ["ei", "all", "tasks", "2", "tasks", "0.25", "[–]", ".5", ".5"] in rows
    assert ["ei", "branin", "5", "seeds", "0.25", "[0.125,", "0.375]", "&lt;.001", "–"] in rows
    assert ["2", "[1,", "2]", "Mine", "0.5", "0.2", "0.125", "0.02"] in rows
    assert ["1", "[1,", "2]", "ei", "0.25", "0.1", "–", "0.01"] in rows
    assert len(re.findall('class="mine"', text)) == 1
    for part in ("Rank 2 [1, 2] of 2 methods", "<li>one note</li>", "We ran Mine with 5 seeds", "@software{plumbline,"):
        assert part in text
    told = terms(standing("Mine"), DIFFERENCES, len(PROTOCOL.against))
    assert any("[–]" in term for term in told), "one interval is open"
    assert all(f"<li>{escape(term)}</li>" in text for term in told)
    assert "http" not in text, "it needs no network"


def test_names_are_no_markup() -> None:
    text = page("<b>Mine</b> & more", ("<script>alert(1)</script>",))
    assert "<b>" not in text
    assert "<script>" not in text
    assert "&lt;b&gt;Mine&lt;/b&gt; &amp; more" in text
