"""The paragraph says what was run, and cites the study and the papers of the methods compared with."""

from plumbline.analysis.atlas.citations import PAPERS
from plumbline.analysis.atlas.paragraph import Protocol, methods_paragraph, methods_text
from plumbline.api.repository import find_repository

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
        "Results of log EI, CMA-ES, conformal EI [@stanton2023], LOCBO [@kim2025] are those of the atlas (cmaes 0.12).",
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
    assert "no number includes" not in text
    lost = methods_text(protocol._replace(without=["Levy", "Camel"], failed=2), CITATION)
    assert (
        "Branin; Rover. Mine has no score on Levy; Camel, which no number includes. 2 other trials of Mine failed"
        in lost
    )
    plain = methods_text(protocol, CITATION)
    assert "conformal EI (Stanton et al., 2023), LOCBO (Kim et al., 2025) are" in plain
    assert "@" not in plain
