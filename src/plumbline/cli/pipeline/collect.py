"""The command `plumbline collect`: collect the records of an experiment."""

from pathlib import Path
from typing import Annotated

from plumbline.cli.app import (
    CONFIG,
    WORKFLOW,
    ConfigOption,
    ExperimentArgument,
    OutputOption,
    StoreOption,
    TrialsOption,
    app,
    path_option,
    places,
    read_plan,
    refuse_losses,
)
from plumbline.core.errors import PlumblineError


@app.command(rich_help_panel=WORKFLOW)
def collect(
    experiment: ExperimentArgument,
    output: OutputOption,
    snapshots: Annotated[Path, path_option(help="file to write the snapshots of models to")],
    trials: TrialsOption = None,
    config: ConfigOption = CONFIG,
    store: StoreOption = None,
) -> None:
    """Concatenate the records of an experiment's jobs; an incomplete grid is an error."""
    from plumbline.analysis.evidence.collect import Grid
    from plumbline.analysis.evidence.collect import collect as collect_records

    loaded = read_plan(config)
    chunks = loaded.resolve(experiment).chunks
    if not chunks:
        raise PlumblineError(f"{experiment} has no trials in preset {loaded.config.preset!r}")
    at = places(store, trials, config=loaded.config)
    paths = [chunk.path(at.trials) for chunk in chunks]
    refuse_losses([output, snapshots], *paths, config=config, folders=[at.store])
    collect_records(paths, Grid.of(experiment, chunks), at.store, loaded.config.allow_incomplete, output, snapshots)
