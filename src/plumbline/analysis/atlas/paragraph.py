"""The paragraph of a paper that says how a method was compared with those of the atlas, with the entries to cite."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plumbline.core.options import read_yaml
from plumbline.core.words import counted

PAPERS = {
    "calibrated": "Calibrated Uncertainty Estimation Improves Bayesian Optimization",
    "conformal": "Bayesian Optimization with Conformal Prediction Sets",
    "localised": "Robust Bayesian Optimization via Localized Online Conformal Prediction",
    "sparse": "Approximation-Aware Bayesian Optimization",
}
"""Titles of the papers in `CITATION.cff`, by the folder of `plumbline.methods` that their methods are in."""


FIELDS = {
    "journal": "journal",
    "volume": "volume",
    "year": "year",
    "version": "version",
    "doi": "doi",
    "note": "notes",
}
"""Of an entry of BibTeX, and what they are called in `CITATION.cff`."""


class Protocol(NamedTuple):
    """What was run.

    Attributes:
        mine: one's own method.
        against: the methods on file that it is compared with.
        papers: titles of the papers that some of these are from, by method.
        libraries: public libraries that these are, with their versions on file.
        titles: of the tasks.
        budgets: points of the initial design and rounds of each task.
        seeds: number of one's own.
        paired: least and greatest number of pairs of a task.
        edition: of the atlas.
        versions: of the libraries, by name.
    """

    mine: str
    against: Sequence[str]
    papers: Mapping[str, str]
    libraries: Sequence[str]
    titles: Sequence[str]
    budgets: Sequence[tuple[int, int]]
    seeds: int
    paired: tuple[int, int]
    edition: str
    versions: Mapping[str, str]


def methods_paragraph(protocol: Protocol, citation: Path) -> str:
    """Return the paragraph as Markdown, and the BibTeX entries below it.

    Args:
        protocol: what was run.
        citation: the file `CITATION.cff`.
    """
    text, entries = methods_text(protocol, citation, markdown=True), bibtex(citation, protocol)
    return f"{text}\n\n```bibtex\n{entries}```\n"


def methods_text(protocol: Protocol, citation: Path, markdown: bool = False) -> str:
    """Return what was run, in the words of a paper.

    Args:
        protocol: what was run.
        citation: the file `CITATION.cff`.
        markdown: cite the entries of `bibtex` as Pandoc does; else authors and year stand in the text.
    """
    one = protocol
    cite = " [@plumbline]" if markdown else ""
    references = _references(citation)
    against = ", ".join(
        f"{name} {_cited(references[one.papers[name]], markdown)}" if name in one.papers else name
        for name in one.against
    )
    count = len(one.titles)
    budgets = " or ".join(f"{first} + {rounds}" for first, rounds in sorted(set(one.budgets)))
    low, high = one.paired
    pairs = f"{low}" if low == high else f"{low} to {high}"
    versions = ", ".join(f"{name} {version}" for name, version in one.versions.items())
    stored = f" ({', '.join(one.libraries)})" if one.libraries else ""
    return (
        f"We ran {one.mine} with {counted(one.seeds, 'seed')} on {counted(count, 'task')} of the plumbline atlas "
        f"(edition {one.edition}){cite}: {'; '.join(one.titles)}. Budgets are the atlas' own, {budgets} "
        "evaluations (initial design + rounds), and so are initial designs and noise, which all methods share seed by "
        f"seed. Results of {against} are the stored ones{stored}. "
        "The score of a run is the regret of the best noise-free value in units of that of the initial design, "
        "averaged over rounds: 0 is best, and 1 is no progress. "
        f"Differences are paired by seed ({pairs} seeds a task), averaged on each task, and then over tasks, "
        "a task counting once; intervals are 95%, and at each end the wider of Student's and of a studentised "
        "bootstrap's. P-values are two-sided and corrected by Holm's method for the number of methods compared with. "
        f"Software: {versions}."
    )


def bibtex(citation: Path, protocol: Protocol) -> str:
    """Return the entry of the study, with the edition of the atlas and its year, and those of the papers.

    Args:
        citation: the file `CITATION.cff`.
        protocol: what was run.
    """
    study = {
        **_fields(read_yaml(citation)),
        "year": protocol.edition.partition(".")[0],
        "note": f"Atlas edition {protocol.edition}",
    }
    references = _references(citation)
    papers = [references[title] for title in dict.fromkeys(protocol.papers.values())]
    entries = [("software", "plumbline", study), *((_kind(one), _key(one), _fields(one)) for one in papers)]
    return "\n".join(_entry(*one) for one in entries)


def _references(citation: Path) -> dict[str, dict[str, Any]]:
    """Return the references of `CITATION.cff` by title."""
    about: Any = read_yaml(citation)
    return {one["title"]: one for one in about["references"]}


def _cited(reference: Mapping[str, Any], markdown: bool) -> str:
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
        **{name: about.get(source) for name, source in FIELDS.items()},
    }
    return {name: str(value) for name, value in fields.items() if value is not None}


def _entry(kind: str, key: str, fields: Mapping[str, str]) -> str:
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
    return f"@{kind}{{{key},\n{lines}}}\n"
