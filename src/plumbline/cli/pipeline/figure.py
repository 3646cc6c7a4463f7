"""The command `plumbline figure`: draw the figure of an experiment."""

from pathlib import Path
from typing import Annotated

from plumbline.cli.app import (
    CONFIG,
    WORKFLOW,
    ConfigOption,
    ExperimentArgument,
    app,
    path_option,
    read_plan,
    refuse_losses,
)


@app.command(rich_help_panel=WORKFLOW)
def figure(
    experiment: ExperimentArgument,
    output: Annotated[
        list[Path], path_option("--output", "-o", help="files to write; their suffixes determine the format")
    ],
    records: Annotated[Path | None, path_option(help="the experiment's records, where it has any")] = None,
    snapshots: Annotated[Path | None, path_option(help="the experiment's snapshots of models")] = None,
    illustration: Annotated[Path | None, path_option(help="the file that `plumbline illustrate` wrote")] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Draw an experiment's figure."""
    from plumbline.analysis.outputs.draw import check_formats, columns_for, draw, evidence_of

    resolved = read_plan(config).resolve(experiment)
    columns = columns_for(resolved, "figure")
    check_formats(output)
    refuse_losses(output, records, snapshots, illustration, config=config)
    draw(resolved, evidence_of(resolved, columns, records, snapshots, illustration), output)
