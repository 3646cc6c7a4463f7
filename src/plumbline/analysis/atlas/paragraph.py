"""The paragraph of a paper that says how a method was compared with those of the atlas, with the entries to cite."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from plumbline.analysis.atlas.citations import bibtex, cited, references
from plumbline.core.words import counted


class Protocol(NamedTuple):
    """What was run.

    Attributes:
        mine: one's own method.
        against: the methods of the atlas that it is compared with.
        papers: titles of the papers that some of these are from, by method.
        libraries: public libraries that these are, with the versions that they ran with.
        titles: of the tasks on which one's own method has a score.
        budgets: points of the initial design and rounds of each task.
        seeds: number of one's own.
        paired: least and greatest number of pairs of a task.
        edition: of the atlas.
        versions: of the libraries, by name.
        without: titles of the tasks on which it has none.
        failed: the number of its trials that failed on the others.
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
    without: Sequence[str] = ()
    failed: int = 0


def methods_paragraph(protocol: Protocol, citation: Path) -> str:
    """Return the paragraph as Markdown, and the BibTeX entries below it.

    Args:
        protocol: what was run.
        citation: the file `CITATION.cff`.
    """
    text = methods_text(protocol, citation, markdown=True)
    entries = bibtex(citation, protocol.edition, protocol.papers.values())
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
    papers = references(citation)
    against = ", ".join(
        f"{name} {cited(papers[one.papers[name]], markdown)}" if name in one.papers else name for name in one.against
    )
    count = len(one.titles)
    budgets = " or ".join(f"{first} + {rounds}" for first, rounds in sorted(set(one.budgets)))
    low, high = one.paired
    pairs = f"{low}" if low == high else f"{low} to {high}"
    versions = ", ".join(f"{name} {version}" for name, version in one.versions.items())
    stored = f" ({', '.join(one.libraries)})" if one.libraries else ""
    lost = f"{one.mine} has no score on {'; '.join(one.without)}, which no number includes. " if one.without else ""
    if one.failed:
        lost += f"{counted(one.failed, 'other trial')} of {one.mine} failed, and no number includes them. "
    return (
        f"We ran {one.mine} with {counted(one.seeds, 'seed')} on {counted(count, 'task')} of the plumbline atlas "
        f"(edition {one.edition}){cite}: {'; '.join(one.titles)}. {lost}Budgets are the atlas' own, {budgets} "
        "evaluations (initial design + rounds), and so are initial designs and noise, which all methods share seed by "
        f"seed. Results of {against} are those of the atlas{stored}. "
        "The score of a run is the regret of the best noise-free value in units of that of the initial design, "
        "averaged over rounds: 0 is best, and 1 is no progress. "
        f"Differences are paired by seed ({pairs} seeds a task), averaged on each task, and then over tasks, "
        "a task counting once; intervals are 95%, and at each end the wider of Student's and of a studentised "
        "bootstrap's. P-values are two-sided and corrected by Holm's method for the number of methods compared with. "
        f"Software: {versions}."
    )
