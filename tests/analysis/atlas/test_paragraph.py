"""The paragraph says what was run, and the entry is that of the study."""

from plumbline.analysis.atlas.paragraph import PAPERS, Protocol, bibtex, methods_paragraph, methods_text
from plumbline.api.repository import find_repository
from plumbline.registry.catalogue import catalogue

CITATION = find_repository() / "CITATION.cff"


def test_the_paragraph() -> None:
    protocol = Protocol(
        mine="Mine",
        against=["log EI", "CMA-ES", "conformal EI", "LOCBO"],
        papers={"conformal EI": PAPERS["conformal"], "LOCBO": PAPERS["localised"]},
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
        "Results of log EI, CMA-ES, conformal EI [@stanton2023], LOCBO [@kim2025] are the stored ones (cmaes 0.12).",
        "(3 to 5 seeds a task)",
        "Software: botorch 0.1.",
        "@software{plumbline,",
        "@inproceedings{stanton2023,\n  author = {Stanton, Samuel and Maddox, Wesley and Wilson, Andrew Gordon},",
        "  booktitle = {AISTATS 2023},",
        "@article{kim2025,",
        "  doi = {10.1109/TSP.2025.3559568},",
    ):
        assert part in text
    assert "deshpande" not in text
    plain = methods_text(protocol, CITATION)
    assert "conformal EI (Stanton et al., 2023), LOCBO (Kim et al., 2025) are" in plain
    assert "@" not in plain


def test_each_paper_is_in_the_citation_file_and_its_methods_in_a_folder() -> None:
    folders = {one.module.split(".")[2] for one in catalogue().method.values()}
    assert set(PAPERS) <= folders
    named = {title: title for title in PAPERS.values()}
    assert bibtex(CITATION, Protocol("", [], named, [], [], [], 0, (0, 0), "2026.12", {})).count("\n@") == len(PAPERS)


def test_the_entry_is_that_of_the_citation_file() -> None:
    entry = bibtex(CITATION, Protocol("", [], {}, [], [], [], 0, (0, 0), "2026.12", {}))
    assert "author = {{the plumbline developers}}" in entry
    assert "title = {{plumbline: a reproducibility study of Bayesian optimisation under imperfect models}}" in entry
    assert "year = {2026}" in entry
    assert "note = {Atlas edition 2026.12}" in entry
