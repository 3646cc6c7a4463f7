"""Files of a comparison with the atlas: a LaTeX table, a methods paragraph, a forest plot, and an HTML page."""

from typing import TYPE_CHECKING

from plumbline.api.benching import RUN_HERE, Bench, Compared
from plumbline.core.libraries import installed_version
from plumbline.core.places import shipped
from plumbline.registry.catalogue import catalogue

if TYPE_CHECKING:
    from plumbline.analysis.atlas.paragraph import Protocol

LIBRARIES = ("plumbline", "torch", "botorch", "gpytorch", "numpy", "scipy")
"""Whose versions a paper states."""


def latex(bench: Bench, result: Compared) -> str:
    """Return the scores as a LaTeX table, each beside one's own, with the best one and its equals in bold."""
    from plumbline.analysis.atlas.score_table import score_table

    return score_table(result.trials, bench.method.name, result.differences, bench.titles, bench.legends)


def paragraph(bench: Bench, result: Compared) -> str:
    """Return a paragraph on the comparison for a paper, as Markdown, with a BibTeX entry."""
    from plumbline.analysis.atlas.paragraph import methods_paragraph

    return methods_paragraph(protocol(bench, result), shipped() / "CITATION.cff")


def page(bench: Bench, result: Compared) -> str:
    """Return the whole comparison as an HTML page."""
    from plumbline.analysis.publish.bench_page import bench_page

    figure, citation = forest(bench, result, "svg"), shipped() / "CITATION.cff"
    tables, notes = (result.standing, result.differences), [*bench.notes, *result.refusals, *result.failures]
    return bench_page(bench.method.name, protocol(bench, result), *tables, figure, notes, citation)


def forest(bench: Bench, result: Compared, kind: str) -> bytes:
    """Return the forest plot of the differences as a file of a format: `pdf`, `svg` or `png`."""
    from plumbline.analysis.atlas.forest import forest_file

    return forest_file(kind, result.differences, bench.method.name, bench.titles, bench.legends)


def protocol(bench: Bench, result: Compared) -> "Protocol":
    """Return what was run."""
    from plumbline.analysis.atlas.citations import PAPERS
    from plumbline.analysis.atlas.edition import EDITION
    from plumbline.analysis.atlas.paragraph import Protocol
    from plumbline.analysis.comparisons.effects import ALL

    libraries = dict.fromkeys([*LIBRARIES, *catalogue().find("method", bench.method.ref.name).libraries])
    pairs = [one.pairs for one in result.differences if one.task != ALL]
    cells = bench.here[bench.here["method"].isin(bench.against)]
    stored = sorted({one for text in cells["libraries"].dropna() for one in str(text).split("; ") if one})
    labels = {name: bench.legends[name].label if name in bench.legends else name for name in bench.against}
    folders = {name: _folder(own) for name, own in dict(zip(cells["method"], cells["class"], strict=True)).items()}
    own = result.own
    scored = set(own.loc[own["score"].notna(), "task"])
    return Protocol(
        bench.method.name.removesuffix(RUN_HERE),
        list(labels.values()),
        {labels[name]: PAPERS[folder] for name, folder in folders.items() if folder in PAPERS},
        stored,
        [bench.titles[task] for task in bench.specs if task in scored],
        [(spec.budget.initial.size, spec.budget.rounds) for task, spec in bench.specs.items() if task in scored],
        bench.seeds,
        (min(pairs, default=0), max(pairs, default=0)),
        EDITION,
        {name: version for name in libraries if (version := installed_version(name)) is not None},
        [bench.titles[task] for task in bench.specs if task not in scored],
        int(own.loc[own["task"].isin(scored), "score"].isna().sum()),
    )


def _folder(method: str) -> str:
    """Return the folder of `plumbline.methods` that a method is in, empty where it has been renamed since."""
    if not catalogue().has("method", method):
        return ""
    return catalogue().find("method", method).module.removeprefix("plumbline.methods.").partition(".")[0]
