"""The command `plumbline illustrate`: compute illustrations."""

from pathlib import Path
from typing import Annotated

import typer

from plumbline.cli.app import CONFIG, WORKFLOW, ConfigOption, app, path_option, read_plan, refuse_losses
from plumbline.cli.completing import complete
from plumbline.core.errors import PlumblineError


@app.command(rich_help_panel=WORKFLOW)
def illustrate(
    experiment: Annotated[
        list[str], typer.Argument(help="names of experiments", autocompletion=complete("experiment"))
    ],
    output: Annotated[list[Path], path_option("--output", "-o", help="files to write, one for each experiment")],
    config: ConfigOption = CONFIG,
) -> None:
    """Compute experiments' illustrations, which need no trials."""
    from plumbline.api.running import one_thread
    from plumbline.illustrations.illustrate import illustrate as compute
    from plumbline.illustrations.illustrate import write

    if len(experiment) != len(output):
        raise PlumblineError(f"name an --output for each experiment (got {len(output)} for {len(experiment)})")
    refuse_losses(output, config=config)
    loaded = read_plan(config)
    with one_thread():
        for name, path in zip(experiment, output, strict=True):
            write(path, compute(loaded.resolve(name)), name)
