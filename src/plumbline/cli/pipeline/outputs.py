"""The command `plumbline outputs`: all outputs of an experiment."""

from pathlib import Path
from typing import Annotated

from plumbline.cli.app import (
    CONFIG,
    WORKFLOW,
    ConfigOption,
    ExperimentArgument,
    StoreOption,
    TrialsOption,
    app,
    path_option,
    read_plan,
)
from plumbline.cli.pipeline.collect import collect
from plumbline.cli.pipeline.figure import figure
from plumbline.cli.pipeline.table import table


@app.command(rich_help_panel=WORKFLOW)
def outputs(
    experiment: ExperimentArgument,
    folder: Annotated[
        Path, path_option(help="results of the preset: illustrations are read from there, all else is written there")
    ],
    trials: TrialsOption = None,
    config: ConfigOption = CONFIG,
    store: StoreOption = None,
) -> None:
    """Collect an experiment's records, draw its figure and write its table: `collect`, `figure` and `table` in one."""
    resolved = read_plan(config).resolve(experiment)
    has = resolved.experiment
    records, snapshots, illustration = (
        folder / kind / f"{experiment}.parquet" if there else None
        for kind, there in (
            ("records", resolved.chunks),
            ("snapshots", resolved.chunks),
            ("illustrations", has.illustration),
        )
    )
    if records and snapshots:
        collect(experiment, records, snapshots, trials, config, store)
    if has.figure:
        drawn = [folder / "figures" / f"{experiment}.{ending}" for ending in ("svg", "pdf", "png")]
        figure(experiment, drawn, records, snapshots, illustration, config)
    if has.table:
        table(experiment, folder / "tables" / f"{experiment}.csv", records, config)
