"""Begin a method, a problem, a study or a package."""

from pathlib import Path
from typing import Annotated

import typer

from plumbline.cli.app import USE, app, path_option


@app.command(rich_help_panel=USE)
def new(
    kind: Annotated[str, typer.Argument(help="method, problem, study or package")],
    name: Annotated[str, typer.Argument(help="lower-case letters and digits with hyphens between them: my-ei")],
    folder: Annotated[
        Path, path_option(help="the checkout of plumbline; for a package, where its own folder goes")
    ] = Path("."),
) -> None:
    """Write a small method, problem, study or package of your own that works, and say how to run it.

    No file is overwritten.
    """
    from plumbline.cli.skeletons import write_skeleton

    paths, commands = write_skeleton(kind, name, folder)
    print(*paths, "next:", *(f"  {command}" for command in commands), sep="\n")
