"""The command `plumbline table`: write the table of an experiment."""

from pathlib import Path
from typing import Annotated

from plumbline.cli.app import (
    CONFIG,
    WORKFLOW,
    ConfigOption,
    ExperimentArgument,
    OutputOption,
    app,
    path_option,
    read_plan,
    refuse_losses,
)


@app.command(rich_help_panel=WORKFLOW)
def table(
    experiment: ExperimentArgument,
    output: OutputOption,
    records: Annotated[Path | None, path_option(help="the experiment's records, where it has any")] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Write an experiment's table as CSV."""
    from plumbline.analysis.outputs.draw import columns_for, evidence_of, tabulate
    from plumbline.core.files import atomic

    resolved = read_plan(config).resolve(experiment)
    columns = columns_for(resolved, "table")
    refuse_losses(output, records, config=config)
    frame = tabulate(resolved, evidence_of(resolved, columns, records))
    with atomic(output) as part:
        frame.to_csv(part, index=False, float_format="%.6g")
