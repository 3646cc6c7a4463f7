"""Entries are those of `CITATION.cff`, once each."""

from plumbline.analysis.atlas.citations import PAPERS, bibtex
from plumbline.api.repository import find_repository
from plumbline.registry.catalogue import catalogue

CITATION = find_repository() / "CITATION.cff"


def test_each_paper_is_in_the_citation_file_and_its_methods_in_a_folder() -> None:
    assert set(PAPERS) <= {one.module.split(".")[2] for one in catalogue().method.values()}
    entries = bibtex(CITATION, "2026.12", [*PAPERS.values(), *PAPERS.values()])
    assert entries.count("\n@") == len(PAPERS)
    assert all(f"title = {{{{{title}}}}}" in entries for title in PAPERS.values())


def test_the_entry_of_the_study_is_that_of_the_citation_file() -> None:
    entry = bibtex(CITATION, "2026.12")
    assert "author = {{the plumbline developers}}" in entry
    assert "title = {{plumbline: a reproducibility study of Bayesian optimisation under imperfect models}}" in entry
    assert "year = {2026}" in entry
    assert "note = {Atlas edition 2026.12}" in entry
