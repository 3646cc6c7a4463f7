"""Commands that the rules of the workflow call, one for each stage."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plumbline.cli.app import (
    CONFIG,
    WORKFLOW,
    ConfigOption,
    DataOption,
    DeviceOption,
    FolderArgument,
    OutputOption,
    StoreOption,
    TrialsOption,
    app,
    existing_folder,
    parse_json,
    path_option,
    places,
    read_plan,
    refuse_losses,
)
from plumbline.cli.completing import complete
from plumbline.core.errors import PlumblineError
from plumbline.core.places import ATLAS, REFERENCE, own
from plumbline.core.words import counted
from plumbline.store.published import CLAIMS
from plumbline.tracking.addresses import local

if TYPE_CHECKING:
    from plumbline.study.plan import Plan
    from plumbline.study.resolved import ResolvedExperiment


DatasetsOption = Annotated[
    Path | None, path_option(help="the list of datasets; default: config/datasets.yaml of the workspace")
]

ExperimentArgument = Annotated[
    str,
    typer.Argument(help="an experiment; `plumbline experiments` lists them", autocompletion=complete("experiment")),
]


def listed(kind: str) -> Path:
    """Return the list of datasets or models of the workspace, or of the package."""
    from plumbline.api.repository import find_repository

    return find_repository() / "config" / f"{kind}.yaml"


@app.command(rich_help_panel=WORKFLOW)
def fetch(
    dataset: Annotated[str, typer.Argument(help="a dataset of config/datasets.yaml")],
    directory: Annotated[Path | None, path_option(help="folder of downloads; default: raw in --data")] = None,
    mirror: Annotated[
        Path | None, path_option(envvar="PLUMBLINE_MIRROR", help="folder in which to look before the network")
    ] = None,
    data: DataOption = None,
    catalogue: DatasetsOption = None,
) -> None:
    """Download a dataset, or take it from a mirror, and verify its checksum."""
    from plumbline.data.datasets import find_dataset, load_datasets
    from plumbline.data.fetch import fetch as fetch_dataset

    entry = find_dataset(load_datasets(catalogue or listed("datasets")), dataset)
    print(fetch_dataset(entry, directory or places(data=data).data / "raw", mirror))


@app.command(rich_help_panel=WORKFLOW)
def features(
    dataset: Annotated[str, typer.Argument(help="a dataset of config/datasets.yaml")],
    output: Annotated[
        Path | None, path_option("--output", "-o", help="file to write; default: where trials look for it in data")
    ] = None,
    raw: Annotated[Path | None, path_option(help="the downloaded file; none for generated datasets")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=1024, help="processes")] = 1,
    data: DataOption = None,
    catalogue: DatasetsOption = None,
) -> None:
    """Build the features of a dataset."""
    from plumbline.data.datasets import dataset_for, load_datasets
    from plumbline.data.features import build_features, write_features

    catalogue = catalogue or listed("datasets")
    output = output or places(data=data).data / "features" / f"{dataset}.parquet"
    entry = dataset_for(output, load_datasets(catalogue), dataset)
    refuse_losses(output, raw, catalogue)
    table = build_features(entry, raw, jobs)
    write_features(table, output, entry)
    print(f"{output}: {counted(len(table), 'row')}")


@app.command(rich_help_panel=WORKFLOW)
def model(
    name: Annotated[str, typer.Argument(help="a model of config/models.yaml")],
    output: Annotated[
        Path | None, path_option("--output", "-o", help="file to write; default: where trials look for it in data")
    ] = None,
    data: DataOption = None,
    catalogue: Annotated[
        Path | None, path_option(help="the list of models; default: config/models.yaml of the workspace")
    ] = None,
    device: DeviceOption = "cpu",
    jobs: Annotated[int, typer.Option(min=1, max=1024, help="processes, for trainers that can use several")] = 1,
    anew: Annotated[bool, typer.Option("--anew", help="train it even if the atlas has it")] = False,
) -> None:
    """Train a model that problems or methods read from a file, or resume an interrupted training.

    A model of the atlas (results/atlas/models) is copied instead, since a new training would give another model.
    """
    import logging

    from plumbline.api.running import one_thread
    from plumbline.core.device import device_called
    from plumbline.data.models import load_models
    from plumbline.trainers.base import train
    from plumbline.trainers.kept import kept_model, take_kept

    catalogue, data = catalogue or listed("models"), places(data=data).data
    output = output or data / "models" / f"{name}.npz"
    refuse_losses(output, catalogue, *data.glob("raw/*"), *data.glob("features/*"))
    entries = load_models(catalogue)
    if not anew and name in entries and (kept := kept_model(name, entries[name])):
        take_kept(kept, output)
        print(f"{output}: a copy of {kept}")
        return
    if name in entries:
        output.parent.mkdir(parents=True, exist_ok=True)  # where a training keeps what it has so far
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # a line an epoch
    with one_thread():
        train(name, entries, data, output, device_called(device), jobs)
    print(output)


@app.command(rich_help_panel=WORKFLOW)
def trials(
    chunk: Annotated[
        list[str],
        typer.Option(
            help="spec and seeds as JSON, as often as --output; `plumbline plan --chunks` prints them", metavar="<JSON>"
        ),
    ],
    output: Annotated[list[Path], path_option("--output", "-o", help="files to write, one for each chunk")],
    store: StoreOption = None,
    data: DataOption = None,
    device: DeviceOption = "cpu",
    lockstep: Annotated[int, typer.Option(min=1, help="seeds that run in lockstep, if the method supports it")] = 1,
) -> None:
    """Run or resume the trials of chunks, one chunk after another, and collect their records."""
    from plumbline.api.running import run_specs
    from plumbline.core.arrow import without_pandas
    from plumbline.core.options import parse
    from plumbline.store import records
    from plumbline.store.spec import Chunk

    if len(chunk) != len(output):
        raise PlumblineError(f"name an --output for each --chunk (got {len(output)} for {len(chunk)})")
    at = places(store, data=data)
    refuse_losses(output, *at.data.glob("*/*"), folders=[at.store])
    without_pandas()
    chunks = [parse(Chunk, parse_json(text, "--chunk"), "--chunk") for text in chunk]
    for one, path in zip(chunks, output, strict=True):
        specs = one.specs()
        folders = run_specs(specs, at.store, at.data, device, lockstep=lockstep, reasons=True)
        tables = [folder.table(spec) for folder, spec in zip(folders, specs, strict=True)]
        records.write_table(path, records.concatenate(tables))


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
    collect_records(paths, Grid.of(chunks), at.store, loaded.config.allow_incomplete, output, snapshots)


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


@app.command(rich_help_panel=WORKFLOW)
def claims(
    folder: FolderArgument,
    output: OutputOption,
    config: ConfigOption = CONFIG,
) -> None:
    """Compute the verdict on every claim about the experiments of this run, from their collected records."""
    from plumbline.analysis.verdicts.judge import judge_folder
    from plumbline.core.files import atomic

    refuse_losses(output, *folder.glob("records/*"), config=config)
    frame = judge_folder(read_plan(config).run.experiments, existing_folder(folder, "results"))
    with atomic(output) as part:
        frame.to_csv(part, index=False, float_format="%.6g")


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


@app.command(rich_help_panel=WORKFLOW)
def redraw(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            help="names of experiments; default: all with a reference figure", autocompletion=complete("experiment")
        ),
    ] = None,
    config: ConfigOption = CONFIG,
    reference: Annotated[
        Path | None, path_option(help="folder of the reference results; default: the workspace's")
    ] = None,
) -> None:
    """Redraw the reference figures from the reference results, without running any trial."""
    from plumbline.analysis.publish.redraw import redraw as redrawn

    plans: dict[str, Plan] = {}

    def settings(values: Mapping[str, Any]) -> "Plan":
        layer = json.dumps(values)
        if layer not in plans:
            plans[layer] = read_plan(f"{config},{layer}")
        return plans[layer]

    for name, reason in redrawn(
        settings, existing_folder(reference or own(REFERENCE), "reference results"), experiments or ()
    ):
        print(f"{name}: {f'left as it is, {reason}' if reason else 'drawn'}")


@app.command(rich_help_panel=WORKFLOW)
def pages(
    templates: Annotated[Path, path_option(help="folder of the templates")] = Path("docs/templates"),
    output: Annotated[Path, path_option("--output", "-o", help="folder of the pages")] = Path("docs"),
    config: ConfigOption = CONFIG,
    reference: Annotated[Path, path_option(help="folder of the reference results")] = REFERENCE,
    atlas: Annotated[Path, path_option(help="folder of the atlas, read if a template uses it")] = ATLAS,
) -> None:
    """Write pages from their templates, with the numbers and figures of the reference results and of the atlas."""
    from plumbline.analysis.publish.atlas_numbers import AtlasNumbers
    from plumbline.analysis.publish.figure_kinds import FigureKinds
    from plumbline.analysis.publish.result_pages import ReferenceNumbers, result_pages, write_result_pages

    if output.resolve() == templates.resolve():
        raise PlumblineError(f"output {output} is the folder of the templates: name another folder")
    plan = read_plan(config)
    studies = list(plan.studies.values())
    asked = (
        ReferenceNumbers(existing_folder(reference, "reference results"), studies),
        AtlasNumbers(atlas, plan.library.labels()),
        FigureKinds(reference, studies),
    )
    made = result_pages(existing_folder(templates, "templates"), *asked)
    written = write_result_pages(made, output)
    print("\n".join(map(str, written)) or "all pages are current")


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
