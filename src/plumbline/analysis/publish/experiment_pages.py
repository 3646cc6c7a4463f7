"""One page per experiment: figure, table, settings, provenance, cost, and the claims that rest on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd

from plumbline.analysis.evidence.final_values import with_words_for_one_seed
from plumbline.analysis.evidence.former import FORMER_VARIANTS, former_definitions
from plumbline.analysis.publish.claim_pages import Titles, verdict_of
from plumbline.analysis.publish.pages import listed, render, write_pages
from plumbline.analysis.publish.reference_verdicts import read_claims
from plumbline.analysis.verdicts.judge import KEEP_AGAIN
from plumbline.core.files import read_csv, read_json
from plumbline.core.places import or_shipped
from plumbline.store.reference_files import CLAIMS, COSTS, ExperimentFiles
from plumbline.study.experiments import Experiment, Preset, Study, in_atlas
from plumbline.study.methods_and_tasks import MethodsAndTasks
from plumbline.study.resolved import pairs

Status = Literal["reference results", "in the atlas", "not run yet"]

LONG = 40
"""Rows of a table above which it is folded."""

NAMES = {"task": "task", "method": "method", "baseline": "method"}
"""Columns of tables that hold names of tasks or methods."""


@dataclass(frozen=True)
class Kept:
    """What the reference results hold of an experiment.

    Attributes:
        files: of its results.
        about: provenance of its trials, or else of its illustration; None where it was not run.
        table: as it was written.
        figure: whether there is one.
    """

    files: ExperimentFiles
    about: dict[str, Any] | None
    table: pd.DataFrame | None
    figure: bool


def kept(reference: Path, name: str) -> Kept:
    """What is kept of an experiment among the reference results."""
    files = ExperimentFiles(or_shipped(reference / name))
    abouts = files.provenances
    return Kept(
        files,
        read_json(abouts[0], remedy=KEEP_AGAIN) if abouts else None,
        read_csv(files.table, remedy=KEEP_AGAIN) if files.table.is_file() else None,
        files.figure.is_file(),
    )


def preset_of(experiment: Experiment, found: Kept) -> Preset:
    """The preset of an experiment's runs; before any, or without, the first that has it: paper, desk, quick."""
    said = (found.about or {}).get("preset")
    return next(one for one in reversed(get_args(Preset)) if (one == said if said else experiment.at(one) is not None))


def titled(table: pd.DataFrame, titles: Titles) -> pd.DataFrame:
    """A table with titles in place of names, and columns without underscores, which says where there is one seed."""
    shown = with_words_for_one_seed(table)
    for column, kind in NAMES.items():
        if column in shown:
            names = tuple(dict.fromkeys(shown[column].dropna()))
            words = titles.tasks(names) if kind == "task" else titles.methods(names)
            shown[column] = shown[column].map(dict(zip(names, words, strict=True)))
    return shown.rename(columns=lambda name: heading(str(name), titles))


def heading(column: str, titles: Titles) -> str:
    """The heading of a column; `rank, branin` names a task."""
    words, comma, task = column.rpartition(", ")
    return f"{words}, {titles.task(task)}" if comma else column.replace("_", " ")


def grid_of(entries: MethodsAndTasks, experiment: Experiment) -> pd.DataFrame:
    """The tasks and methods of an experiment, one row per pair: `task`, `method`, `seeds`, `rounds`."""
    rows = [
        (task, method, block.seeds or experiment.seeds, block.rounds or entries.tasks[task].budget.rounds)
        for block in experiment.grid
        for task, method in pairs(entries, block)
    ]
    return pd.DataFrame(rows, columns=["task", "method", "seeds", "rounds"])


def tasks_in_words(entries: MethodsAndTasks, grid: pd.DataFrame, titles: Titles) -> list[str]:
    """Each task of a grid with its initial design and its rounds."""
    names = tuple(dict.fromkeys(grid["task"]))
    words = []
    for name, title in zip(names, titles.tasks(names), strict=True):
        budget = entries.tasks[name].budget
        rounds = sorted(set(grid.loc[grid["task"] == name, "rounds"]))
        points = "" if budget.q == 1 else f" of {budget.q} points"
        first = f"{budget.initial.size} {budget.initial.design} points"
        words.append(f"{title}: {first}, then {listed(map(str, rounds))} rounds{points}")
    return words


def ranges(numbers: pd.Series) -> str:
    """The distinct numbers of a column in words."""
    return listed(str(one) for one in sorted(set(numbers)))


def in_words(value: Any) -> str:
    """A value of provenance, with the distinct ones of several."""
    if isinstance(value, list):
        return ", ".join(dict.fromkeys(in_words(one) for one in value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    if value is None or isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def provenance_rows(about: dict[str, Any]) -> list[tuple[str, str]]:
    """Names and values of provenance in words, without those that the settings say."""
    settings = {"experiment", "preset", "data", "seeds", "budget", "trials", "wall_hours", FORMER_VARIANTS}
    words = {"dirty": "uncommitted changes", "dtype": "floating point"}
    return [
        (words.get(name, name.replace("_", " ")), in_words(value))
        for name, value in about.items()
        if name not in settings
    ]


def former_of(about: dict[str, Any], methods: tuple[str, ...], titles: Titles) -> list[tuple[str, str]]:
    """Titles of methods whose definition has changed since they ran, with the departures that they ran with."""
    former = former_definitions(about, methods)
    return list(zip(titles.methods(tuple(former)), former.values(), strict=True))


def experiment_page(
    entries: MethodsAndTasks,
    study: Study,
    name: str,
    found: Kept,
    costs: pd.DataFrame,
    verdicts: dict[str, str],
    atlas: Path,
    folder: Path,
) -> str:
    """The page of one experiment, as Markdown.

    Args:
        entries: all methods and tasks.
        study: of the experiment.
        name: of the experiment.
        found: what is kept of it.
        costs: seconds a round of methods on tasks.
        verdicts: on all claims.
        atlas: folder of the atlas, which keeps the experiments of its own study.
        folder: of the page.
    """
    titles, preset = Titles(entries), preset_of(study.experiments[name], found)
    experiment = study.experiments[name].at(preset)
    assert experiment is not None, "`preset_of` returns one that has the experiment"
    grid = grid_of(entries, experiment)
    methods = tuple(dict.fromkeys(grid["method"]))
    return render(
        "experiment.md.j2",
        name=name,
        study=study,
        experiment=experiment,
        found=found,
        run=found.about is not None,
        status=status_of(study, experiment, found, atlas),
        preset=preset,
        methods=titles.methods(methods),
        tasks=tasks_in_words(entries, grid, titles),
        seeds=ranges(grid["seeds"]) if len(grid) else "",
        table=None if found.table is None else titled(found.table, titles),
        long=found.table is not None and len(found.table) > LONG,
        costs=titled(costs.merge(grid[["task", "method"]], on=["task", "method"]), titles),
        provenance=provenance_rows(found.about or {}),
        former=former_of(found.about or {}, methods, titles),
        claims={one: claim for one, claim in study.claims.items() if name in claim.all_experiments},
        verdicts=verdicts,
        home=relpath(found.files.folder, folder),
        files=sorted(path.name for path in found.files.folder.glob("*")),
    )


def status_of(study: Study, experiment: Experiment, found: Kept, atlas: Path) -> Status:
    """Return where the results of an experiment are; those of the atlas are kept with it alone."""
    if found.about is not None:
        return "reference results"
    return "in the atlas" if study.study == atlas.name and in_atlas(experiment, atlas) else "not run yet"


def write_experiment_pages(
    studies: Sequence[Study], entries: MethodsAndTasks, reference: Path, atlas: Path, folder: Path
) -> None:
    """Write one page per experiment of all studies, and an index of them, to `folder`.

    Args:
        studies: with the experiments.
        entries: all methods and tasks.
        reference: results, with `claims.csv` and `costs.csv`.
        atlas: folder of the atlas.
        folder: of the pages.
    """
    claims = read_claims(reference / CLAIMS)
    verdicts = {
        name: verdict_of(claim, claims[claims["claim"] == name])
        for study in studies
        for name, claim in study.claims.items()
    }
    costs = read_csv(reference / COSTS, ["task", "method"], ["seconds_a_round"], KEEP_AGAIN)
    found = {name: kept(reference, name) for study in studies for name in study.experiments}
    pages = {
        f"{name}.md": experiment_page(entries, study, name, found[name], costs, verdicts, atlas, folder)
        for study in studies
        for name in study.experiments
    }
    status = {
        name: status_of(study, experiment, found[name], atlas)
        for study in studies
        for name, experiment in study.experiments.items()
    }
    pages["index.md"] = render("experiments.md.j2", studies=studies, status=status)
    write_pages(pages, folder)
