"""The command `plumbline reference`: publish results."""

from pathlib import Path
from typing import Annotated

import typer

from plumbline.cli.app import (
    CONFIG,
    WORKFLOW,
    ConfigOption,
    StoreOption,
    app,
    existing_folder,
    path_option,
    places,
    read_plan,
)
from plumbline.cli.completing import complete
from plumbline.core.errors import PlumblineError
from plumbline.core.places import REFERENCE, own


@app.command(rich_help_panel=WORKFLOW)
def reference(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            help="experiments that were run; default: none, and the reference results are judged again",
            autocompletion=complete("experiment"),
        ),
    ] = None,
    folder: Annotated[Path | None, path_option(help="results of the preset that ran them")] = None,
    config: ConfigOption = CONFIG,
    store: StoreOption = None,
    output: Annotated[
        Path | None, path_option("--output", "-o", help="folder of the reference results; default: the workspace's")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="also replace results with more seeds, or of another preset or other data")
    ] = False,
) -> None:
    """Copy figures, tables, curves and runs with provenance into the reference results, and judge the claims."""
    from plumbline.analysis.publish.reference import keep, keep_verdicts

    loaded = read_plan(config)
    output = output or own(REFERENCE)
    if experiments:
        if folder is None:
            raise PlumblineError("name the results to add: --folder results/<preset>")
        chosen = [loaded.resolve(name) for name in dict.fromkeys(experiments)]
        at = places(store, config=loaded.config)
        keep(chosen, existing_folder(folder, "results"), at.store, output, replace)
    keep_verdicts(loaded.studies.values(), loaded.library, output)
