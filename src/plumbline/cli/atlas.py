"""The command of the atlas."""

from collections.abc import Hashable, Mapping
from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plumbline.analysis.comparisons.numbers import NOTHING, probability, short
from plumbline.cli.app import USE, DataOption, app, path_option, say_written
from plumbline.core.errors import PlumblineError
from plumbline.core.words import counted
from plumbline.store.reference_files import EditionFiles

if TYPE_CHECKING:
    import pandas as pd

AddOption = Annotated[
    Path | None, path_option("--add", help="add the finished trials of these results of the study atlas")
]
FigureOption = Annotated[
    Path | None, path_option(help="write the figure of the interventions into this folder, as PNG and SVG")
]
FolderOption = Annotated[Path | None, path_option(help="folder of the edition; results/atlas by default")]


@app.command(rich_help_panel=USE)
def atlas(
    task: Annotated[str, typer.Option(help="show the methods on this task, by score")] = "",
    findings: Annotated[bool, typer.Option("--findings", help="show the analyses of the protocol")] = False,
    ranks: Annotated[
        bool, typer.Option("--ranks", help="ranks of the methods, by track and by cost of an evaluation")
    ] = False,
    figure: FigureOption = None,
    add: AddOption = None,
    folder: FolderOption = None,
    data: DataOption = None,
) -> None:
    """Show the atlas: the results of every method on every task."""
    from plumbline.analysis.atlas.edition import missing_forecasts
    from plumbline.api.editions import add_to_atlas, atlas
    from plumbline.core.places import ATLAS, own_or_shipped

    listings = [name for name, given in {"--task": task, "--findings": findings, "--ranks": ranks}.items() if given]
    if len(listings) > 1:
        raise PlumblineError(f"{', '.join(listings)}: each is a listing of its own; give one of them")
    if figure is not None and figure.exists() and not figure.is_dir():
        raise PlumblineError(f"--figure {figure} is a file: name a folder")
    added = None if add is None else add_to_atlas(add, data=data, folder=folder)
    found = atlas("findings", folder=folder) if findings or figure is not None else None
    if found is not None and figure is not None:
        write_figure(found, len(missing_forecasts(own_or_shipped(ATLAS) if folder is None else folder)), figure)
    if added is not None:  # after the figure: a pipe may end what is printed
        print(f"{counted(added, 'cell')} added or replaced")
    cells = atlas("cells", task=task, folder=folder)
    if found is not None and findings:
        print_findings(found)
    elif ranks:
        print_ranks(atlas("ranks", folder=folder))
    elif task:
        print_scores(atlas("trials", task=task, folder=folder), cells)
    else:
        print_tasks(atlas("tasks", folder=folder), cells)


def write_figure(findings: "pd.DataFrame", missing: int, folder: Path) -> None:
    """Write the figure of the interventions, with the number of tasks and of pairs that are still missing."""
    from plumbline.analysis.atlas import figure
    from plumbline.analysis.atlas.edition import EDITION
    from plumbline.analysis.atlas.interventions import Finding

    rows = [Finding(*row) for row in findings.itertuples(index=False)]
    footer = f"atlas {EDITION}  ·  means over at most {max(one.tasks for one in rows)} tasks, 95% intervals"
    if missing:
        footer += f"\nstill being run: {missing:,} pairs of method and task in these means have no trials yet"
    figure.write_figure(rows, footer, folder)
    say_written(*(EditionFiles(folder).figure(kind) for kind in ("png", "svg")))


OF = {
    "score": "score",
    "calibration_error": "calibration error",
    "correlation": "rank correlation",
    "early": "score",
    "final": "regret",
    "observed": "regret",
    "recommended": "regret",
}
"""Words for what a finding is about."""


def print_findings(findings: "pd.DataFrame") -> None:
    """Print the analyses, a row each."""
    from plumbline.cli.tables import print_table

    rows = [
        (
            *(str(one["analysis"]), str(one["where"]), OF[str(one["of"])], str(one["tasks"])),
            *(f"{one[name]:+.3f}" if isfinite(one[name]) else NOTHING for name in ("value", "low", "high")),
            *("" if isnan(one["p_corrected"]) else probability(one[name]) for name in ("p", "p_corrected")),
        )
        for one in findings.to_dict("records")
    ]
    columns = ("tasks", "mean", "low", "high", "p", "Holm")
    title = "differences, method minus baseline, lower is better; p of primary analyses only"
    print_table(["analysis", "where", "difference of", *columns], rows, columns, title)


def print_ranks(ranks: "pd.DataFrame") -> None:
    """Print the share of the other methods that each method beats, the best on all tasks first."""
    from plumbline.cli.tables import print_table

    by_track = ranks[ranks["cost"] == ""].assign(column=lambda rows: rows["track"])
    by_cost = ranks[ranks["cost"] != ""].assign(column=lambda rows: rows["cost"])
    for title, part in {
        "% of the other methods with a worse score (mean regret over rounds), by track (all: 95% interval)": by_track,
        "the same by regret after equal time, if an evaluation takes": by_cost,
    }.items():
        columns = [str(one) for one in dict.fromkeys(part["column"])]
        cells = part.assign(cell=[share_of(row) for row in part.to_dict("records")])
        shares = part.pivot(index="method", columns="column", values="beaten").sort_values(columns[0], ascending=False)
        written = (
            cells.pivot(index="method", columns="column", values="cell").loc[shares.index, columns].fillna(NOTHING)
        )
        rows = [(str(name), *texts) for name, texts in zip(written.index, written.to_numpy().tolist(), strict=True)]
        print_table(["method", *columns], rows, columns, title)


def share_of(standing: Mapping[Hashable, Any]) -> str:
    """Return a share in percent; of all tasks with its interval."""
    share = f"{100 * standing['beaten']:.0f}"
    if standing["track"] != "all" or standing["cost"] or isnan(standing["low"]):
        return share
    return f"{share} ({100 * standing['low']:.0f} to {100 * standing['high']:.0f})"


def print_tasks(tasks: "pd.DataFrame", cells: "pd.DataFrame") -> None:
    """Print the tasks with the number of their cells."""
    from plumbline.cli.tables import print_table

    rows = []
    for one in tasks.to_dict("records"):
        seeds = cells.loc[cells["task"] == one["task"], "seeds"]
        numbers = (one["rounds"], (seeds > 0).sum(), (seeds == 0).sum(), seeds.sum())
        rows.append((str(one["track"]), str(one["task"]), str(one["title"]), *(str(int(number)) for number in numbers)))
    title = 'empty: methods that cannot run there; pb.atlas("cells") gives the reasons'
    columns = ("rounds", "methods", "empty", "trials")
    print_table(["track", "task", "title", *columns], rows, columns, title, below="title")


def print_scores(trials: "pd.DataFrame", cells: "pd.DataFrame") -> None:
    """Print the mean score of each method on a task, best first, and why the other methods are missing."""
    from plumbline.analysis.atlas.standing import MEASURED
    from plumbline.cli.tables import print_table

    of_method = trials.groupby("method", observed=True)
    means, seeds = of_method[list(MEASURED)].mean().sort_values("score"), of_method.size()
    rows = [(str(name), str(seeds[name]), *map(short, means.loc[name])) for name in means.index]
    columns = ("seeds", *MEASURED.values())
    title = "score: normalised regret (share of the initial regret that remains), mean over rounds; final: last round"
    print_table(["method", *columns], rows, columns, title)
    for reason, some in cells[cells["seeds"] == 0].groupby("empty"):
        print(f"{', '.join(some['method'])}: {reason}")
