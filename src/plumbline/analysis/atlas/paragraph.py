"""The paragraph of a paper that says how a method was compared with those of the atlas, with the entry to cite."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plumbline.core.options import read_yaml
from plumbline.core.words import counted


class Protocol(NamedTuple):
    """What was run.

    Attributes:
        mine: one's own method.
        against: the methods on file that it is compared with.
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
    libraries: Sequence[str]
    titles: Sequence[str]
    budgets: Sequence[tuple[int, int]]
    seeds: int
    paired: tuple[int, int]
    edition: str
    versions: Mapping[str, str]


def methods_paragraph(protocol: Protocol, citation: Path) -> str:
    """Return the paragraph as Markdown, and the BibTeX entry below it.

    Args:
        protocol: what was run.
        citation: the file `CITATION.cff`.
    """
    return f"{methods_text(protocol, ' [@plumbline]')}\n\n```bibtex\n{bibtex(citation, protocol.edition)}```\n"


def methods_text(protocol: Protocol, cite: str = "") -> str:
    """Return what was run, in the words of a paper.

    Args:
        protocol: what was run.
        cite: a citation of the study, with a space before it.
    """
    one = protocol
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
        f"seed. Results of {', '.join(one.against)} are the stored ones{stored}. "
        "The score of a run is the regret of the best noise-free value in units of that of the initial design, "
        "averaged over rounds: 0 is best, and 1 is no progress. "
        f"Differences are paired by seed ({pairs} seeds a task), averaged on each task, and then over tasks, "
        "a task counting once; intervals are 95%, and at each end the wider of Student's and of a studentised "
        "bootstrap's. P-values are two-sided and corrected by Holm's method for the number of methods compared with. "
        f"Software: {versions}."
    )


def bibtex(citation: Path, edition: str) -> str:
    """Return the entry of the study, from its `CITATION.cff`, with the edition of the atlas and its year."""
    about: Any = read_yaml(citation)
    names = (author.get("name") or f"{author['family-names']}, {author['given-names']}" for author in about["authors"])
    fields = {
        "author": " and ".join(f"{{{name}}}" for name in names),
        "title": f"{{{about['title']}}}",
        "year": edition.partition(".")[0],
        "version": about["version"],
        "note": f"Atlas edition {edition}",
    }
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
    return f"@software{{plumbline,\n{lines}}}\n"
