"""The command `plumbline report`: write the report."""

from pathlib import Path
from typing import Annotated

from plumbline.cli.app import (
    CONFIG,
    WORKFLOW,
    ConfigOption,
    FolderArgument,
    OutputOption,
    app,
    path_option,
    read_plan,
    refuse_losses,
)
from plumbline.store.reference_files import CLAIMS


@app.command(rich_help_panel=WORKFLOW)
def report(
    folder: FolderArgument,
    output: OutputOption,
    claims: Annotated[Path | None, path_option(help="the verdicts; default: those of the folder")] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Write the study's page: verdicts, figures, tables, failures, provenance."""
    from plumbline.analysis.publish.report import write_report

    made = [path for kind in ("records", "figures", "tables") for path in folder.glob(f"{kind}/*")]
    refuse_losses(output, claims or folder / CLAIMS, *made, config=config)
    write_report(read_plan(config).run, folder, output, claims or folder / CLAIMS)
