"""The study and the papers of its methods as BibTeX entries and citations, from `CITATION.cff`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from plumbline.core.strict_yaml import read_yaml

PAPERS = {
    "calibrated": "Calibrated Uncertainty Estimation Improves Bayesian Optimization",
    "conformal": "Bayesian Optimization with Conformal Prediction Sets",
    "localised": "Robust Bayesian Optimization via Localized Online Conformal Prediction",
    "sparse": "Approximation-Aware Bayesian Optimization",
}
"""Titles of the papers in `CITATION.cff`, by the folder of `plumbline.methods` that their methods are in."""


def bibtex(citation: Path, edition: str, papers: Iterable[str] = ()) -> str:
    """Return the BibTeX entry of the study, with the edition of the atlas and its year, and those of papers.

    Args:
        citation: the file `CITATION.cff`.
        edition: of the atlas.
        papers: titles of references in that file; one that is there twice has one entry.
    """
    about: Any = read_yaml(citation)
    study = {**_fields(about), "year": edition.partition(".")[0], "note": f"Atlas edition {edition}"}
    known = references(citation)
    cited_papers = [known[title] for title in dict.fromkeys(papers)]
    entries = [("software", "plumbline", study), *((_kind(one), _key(one), _fields(one)) for one in cited_papers)]
    return "\n".join(_entry(*one) for one in entries)


def references(citation: Path) -> dict[str, dict[str, Any]]:
    """Return the references of `CITATION.cff` by title."""
    about: Any = read_yaml(citation)
    return {one["title"]: one for one in about["references"]}


def cited(reference: Mapping[str, Any], markdown: bool) -> str:
    """Return the citation of a reference: Pandoc's, of its entry in `bibtex`, or authors and year in brackets."""
    names = [author["family-names"] for author in reference["authors"]]
    who = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
    return f"[@{_key(reference)}]" if markdown else f"({who}, {reference['year']})"


def _key(reference: Mapping[str, Any]) -> str:
    return f"{reference['authors'][0]['family-names'].lower()}{reference['year']}"


def _kind(reference: Mapping[str, Any]) -> str:
    return "inproceedings" if "conference" in reference else "article"


def _fields(about: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of an entry of BibTeX that an entry of `CITATION.cff` has."""
    names = (
        f"{{{author['name']}}}" if "name" in author else f"{author['family-names']}, {author['given-names']}"
        for author in about["authors"]
    )
    fields = {
        "author": " and ".join(names),
        "title": f"{{{about['title']}}}",
        "booktitle": about.get("conference", {}).get("name"),
        **{name: about.get(name) for name in ("journal", "volume", "year", "version", "doi")},
        "note": about.get("notes"),
    }
    return {name: str(value) for name, value in fields.items() if value is not None}


def _entry(kind: str, key: str, fields: Mapping[str, str]) -> str:
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
    return f"@{kind}{{{key},\n{lines}}}\n"
