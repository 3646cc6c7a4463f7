"""The command `plumbline track`: import trials into MLflow."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.cli.app import (
    CONFIG,
    WORKFLOW,
    ConfigOption,
    DataOption,
    StoreOption,
    TrialsOption,
    app,
    existing_folder,
    path_option,
    places,
    read_plan,
)
from plumbline.core.places import own
from plumbline.tracking.addresses import local

if TYPE_CHECKING:
    from plumbline.study.resolved import ResolvedExperiment


@app.command(rich_help_panel=WORKFLOW)
def track(
    artifacts: Annotated[
        Path | None, path_option(help="results whose figures and tables are attached; default: those of the preset")
    ] = None,
    trials: TrialsOption = None,
    config: ConfigOption = CONFIG,
    store: StoreOption = None,
    uri: Annotated[
        str | None,
        typer.Option(
            envvar="MLFLOW_TRACKING_URI",
            help="the tracking server or database, of which this command must be the only writer; "
            "default: results/mlflow.db in the workspace",
            metavar="<uri>",
        ),
    ] = None,
    data: DataOption = None,
    benchmarks: Annotated[
        Path | None, path_option(help="Snakemake's benchmark files of the jobs of trials, one for each job")
    ] = None,
) -> None:
    """Import finished trials and the trainings of models into MLflow; runs of trials that have not changed stay."""
    from matplotlib.colors import to_hex

    from plumbline.analysis.outputs.style import method_styles, tint
    from plumbline.tracking.importing import import_trials

    def colours(experiment: "ResolvedExperiment") -> dict[str, str]:
        """Those of the figures; what they dash is lighter, for MLflow dashes no run."""
        styles = method_styles(experiment.legends, experiment.legends)
        return {name: to_hex(tint(one.colour, 0.5)) if one.dashed else one.colour for name, one in styles.items()}

    plan = read_plan(config)
    at = places(store, trials, data, plan.config)
    folder = existing_folder(artifacts or own(Path(plan.config.results)) / plan.config.preset, "results")
    print(
        import_trials(plan.run, at.trials, folder, at.store, uri or local(), at.data, plan.jobs(), benchmarks, colours)
    )
