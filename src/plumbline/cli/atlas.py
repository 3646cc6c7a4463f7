"""The command of the atlas."""

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.cli.app import DATA, USE, DataOption, app, path_option

if TYPE_CHECKING:
    import pandas as pd

AddOption = Annotated[
    Path | None, path_option("--add", help="results of the study atlas, whose finished trials are added")
]
FolderOption = Annotated[Path | None, path_option(help="of an edition; else results/atlas")]


@app.command(rich_help_panel=USE)
def atlas(
    task: Annotated[str, typer.Option(help="its methods by their scores, in the place of all tasks")] = "",
    add: AddOption = None,
    folder: FolderOption = None,
    data: DataOption = DATA,
) -> None:
    """Say what is on file of every method on every task, to compare with without running it again."""
    from plumbline.api.editions import add_to_atlas, atlas

    if add is not None:
        print(f"{add_to_atlas(add, data=data, folder=folder)} cells added or replaced")
    cells = atlas("cells", task=task, folder=folder)
    if task:
        print_scores(atlas("trials", task=task, folder=folder), cells)
    else:
        print_tasks(atlas("tasks", folder=folder), cells)


def print_tasks(tasks: "pd.DataFrame", cells: "pd.DataFrame") -> None:
    """Print the tasks with the number of their cells."""
    from plumbline.cli.tables import print_table

    rows = []
    for one in tasks.to_dict("records"):
        seeds = cells.loc[cells["task"] == one["task"], "seeds"]
        numbers = (one["rounds"], (seeds > 0).sum(), (seeds == 0).sum(), seeds.sum())
        rows.append((str(one["track"]), str(one["task"]), str(one["title"]), *(str(int(number)) for number in numbers)))
    title = 'empty: methods that cannot run there; pb.atlas("cells") has the reasons'
    columns = ("rounds", "methods", "empty", "trials")
    print_table(["track", "task", "title", *columns], rows, columns, title)


MEANS = {"score": "score", "final": "final", "calibration_error": "calibration", "seconds": "seconds"}
"""Columns of trials, with the headers of their means."""


def print_scores(trials: "pd.DataFrame", cells: "pd.DataFrame") -> None:
    """Print the mean score of each method on a task, the best first, and the reasons of those that are not there."""
    from plumbline.cli.tables import print_table

    of_method = trials.groupby("method", observed=True)
    means, seeds = of_method[list(MEANS)].mean().sort_values("score"), of_method.size()
    rows = [
        (str(name), str(seeds[name]), *("-" if isnan(value) else f"{value:.3g}" for value in means.loc[name]))
        for name in means.index
    ]
    columns = ("seeds", *MEANS.values())
    title = "score: share of the initial regret that is left, mean over rounds; final: after the last round"
    print_table(["method", *columns], rows, columns, title)
    for reason, some in cells[cells["seeds"] == 0].groupby("empty"):
        print(f"{', '.join(some['method'])}: {reason}")
