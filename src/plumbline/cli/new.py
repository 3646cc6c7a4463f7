"""Begin a workspace, a method, a problem, a study or a package."""

from pathlib import Path
from typing import Annotated

import typer

from plumbline.cli.app import USE, app, path_argument, path_option
from plumbline.core.words import counted


@app.command(rich_help_panel=USE)
def init(folder: Annotated[Path, path_argument(help="the folder, which is created if it does not exist")]) -> None:
    """Make a workspace, a folder in which the workflow runs: configuration, a Slurm profile and a Snakefile.

    No file is overwritten.
    """
    import shlex

    from plumbline.cli.skeletons import write_workspace

    print(f"{folder}: {counted(len(write_workspace(folder)), 'file')}; README.md says how to use them")
    print("next:", f"  cd {shlex.quote(str(folder))} && snakemake --cores 2", sep="\n")


@app.command(rich_help_panel=USE)
def new(
    kind: Annotated[str, typer.Argument(help="method, problem, study or package")],
    name: Annotated[str, typer.Argument(help="lower-case letters and digits, separated by hyphens: my-ei")],
    folder: Annotated[
        Path,
        path_option(help="the workspace of a study; the checkout for a method or problem; where a package goes"),
    ] = Path("."),
) -> None:
    """Write a small method, problem, study or package of your own that works, and say how to run it.

    No file is overwritten.
    """
    from plumbline.cli.skeletons import write_skeleton

    paths, commands = write_skeleton(kind, name, folder)
    print(*paths, "next:", *(f"  {command}" for command in commands), sep="\n")
