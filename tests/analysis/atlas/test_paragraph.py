"""The paragraph says what was run, and the entry is that of the study."""

from plumbline.analysis.atlas.paragraph import Protocol, bibtex, methods_paragraph
from plumbline.api.repository import find_repository

CITATION = find_repository() / "CITATION.cff"


def test_the_paragraph() -> None:
    protocol = Protocol(
        mine="Mine",
        against=["log EI", "CMA-ES"],
        libraries=["cmaes 0.12"],
        titles=["Branin", "Rover"],
        budgets=[(20, 100), (10, 50)],
        seeds=5,
        paired=(3, 5),
        edition="2026.12",
        versions={"botorch": "0.1"},
    )
    text = methods_paragraph(protocol, CITATION)
    for part in (
        "We ran Mine with 5 seeds on 2 tasks of the plumbline atlas (edition 2026.12) [@plumbline]: Branin; Rover.",
        "10 + 50 or 20 + 100 evaluations",
        "Results of log EI, CMA-ES are the stored ones (cmaes 0.12).",
        "(3 to 5 seeds a task)",
        "Software: botorch 0.1.",
        "@software{plumbline,",
    ):
        assert part in text


def test_the_entry_is_that_of_the_citation_file() -> None:
    entry = bibtex(CITATION, "2026.12")
    assert "author = {{the plumbline developers}}" in entry
    assert "title = {{plumbline: a reproducibility study of Bayesian optimisation under imperfect models}}" in entry
    assert "year = {2026}" in entry
    assert "note = {Atlas edition 2026.12}" in entry
