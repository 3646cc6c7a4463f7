"""The command line: one thin command a stage; every rule of the workflow calls one.

Imports are inside the commands: `plumbline --help` must not wait for torch, and a job that aggregates never loads it.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from plumbline.errors import PlumblineError, describe_os_error

if TYPE_CHECKING:
    from plumbline.plan import Plan
    from plumbline.trials.runner import Watch

app = typer.Typer(
    name="plumbline",
    help="A reproducibility study of Bayesian optimisation under imperfect models.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)

ConfigOption = Annotated[
    str,
    typer.Option(
        "--config",
        help="YAML files laid over each other, separated by commas, or the configuration itself as JSON",
        metavar="FILES|JSON",
    ),
]
DataOption = Annotated[Path, typer.Option(help="folder of downloads and built features")]
StoreOption = Annotated[Path, typer.Option(help="folder of all trials")]
TrialsOption = Annotated[Path, typer.Option(help="folder of the jobs' records, as `plumbline trials` writes them")]
FolderArgument = Annotated[Path, typer.Argument(help="results of a preset")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda: where methods and trainers may compute")]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="file to write")]

CONFIG = "config/config.yaml"
STORE = Path("results/store")
TRIALS = Path("results/trials")
DATA = Path("data")
REFERENCE = Path("results/reference")


def _plan(config: str) -> "Plan":
    """Return the plan of `--config`; the repository is the working directory."""
    from plumbline.config import read_config
    from plumbline.plan import load_plan

    if config.lstrip().startswith("{"):
        return load_plan(_json(config, "--config"), Path.cwd(), "--config")
    return load_plan(read_config(*(Path(name) for name in config.split(","))), Path.cwd(), config)


def _folder(path: Path, what: str) -> Path:
    """Return a folder that must be there; raise PlumblineError where it is not."""
    if not path.is_dir():
        raise PlumblineError(f"no folder of {what} at {path}")
    return path


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"plumbline {version('plumbline')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A reproducibility study of Bayesian optimisation under imperfect models."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def _one_thread() -> None:
    """Keep torch to the cores that the job was given, one unless OMP_NUM_THREADS says otherwise."""
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


@app.command()
def fetch(
    dataset: str,
    directory: Annotated[Path, typer.Option(help="folder of downloads")] = DATA / "raw",
    mirror: Annotated[
        Path | None, typer.Option(envvar="PLUMBLINE_MIRROR", help="folder that is tried before the network")
    ] = None,
    catalogue: Annotated[Path, typer.Option(help="the list of datasets")] = Path("config/datasets.yaml"),
) -> None:
    """Download a dataset, or take it from a mirror, and verify its checksum."""
    from plumbline.data.datasets import find_dataset, load_datasets
    from plumbline.data.fetch import fetch as fetch_dataset

    print(fetch_dataset(find_dataset(load_datasets(catalogue), dataset), directory, mirror))


@app.command()
def features(
    dataset: str,
    output: OutputOption,
    raw: Annotated[Path | None, typer.Option(help="the downloaded file; none for generated datasets")] = None,
    jobs: Annotated[int, typer.Option(help="processes")] = 1,
    catalogue: Annotated[Path, typer.Option(help="the list of datasets")] = Path("config/datasets.yaml"),
) -> None:
    """Build the features of a dataset."""
    from plumbline.data.datasets import find_dataset, load_datasets
    from plumbline.data.features import build_features, write_features

    entry = find_dataset(load_datasets(catalogue), dataset)
    table = build_features(entry, raw, jobs)
    write_features(table, output, entry)
    print(f"{output}: {len(table)} rows")


@app.command()
def model(
    name: str,
    output: OutputOption,
    data: DataOption = DATA,
    catalogue: Annotated[Path, typer.Option(help="the list of models")] = Path("config/models.yaml"),
    device: DeviceOption = "cpu",
    jobs: Annotated[int, typer.Option(help="processes, for trainers that can have several")] = 1,
) -> None:
    """Train a model that problems or methods read from a file, or go on with one that was killed."""
    import logging

    from plumbline.data.models import load_models
    from plumbline.trainers.base import train
    from plumbline.trials.runner import device_called

    _one_thread()
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # a line an epoch
    train(name, load_models(catalogue), data, output, device_called(device), jobs)
    print(output)


@app.command()
def trials(
    chunk: Annotated[str, typer.Option(help="spec and seeds as JSON; `plumbline plan --chunks` prints them")],
    output: OutputOption,
    store: StoreOption = STORE,
    data: DataOption = DATA,
    device: DeviceOption = "cpu",
) -> None:
    """Run the seeds of one (task, method), or go on with them, and gather their records."""
    from plumbline import records
    from plumbline.options import parse
    from plumbline.specs import Chunk
    from plumbline.trials.runner import device_called, run_trials

    _one_thread()
    specs = parse(Chunk, _json(chunk, "--chunk"), "--chunk").specs()
    with _watching() as watch:
        folders = run_trials(specs, store, data, watch, device_called(device))
    tables = [folder.table(spec) for folder, spec in zip(folders, specs, strict=True)]
    records.write_table(output, records.concatenate(tables))


@app.command()
def trial(
    problem: Annotated[str, typer.Option(help="a problem of `plumbline problems`, for instance ackley-2")],
    method: Annotated[str, typer.Option(help="a method of `plumbline methods`")],
    seed: int = 0,
    rounds: int = 10,
    q: Annotated[int, typer.Option(help="points a round")] = 1,
    initial: Annotated[int, typer.Option(help="points of the initial design")] = 5,
    design: Annotated[
        str, typer.Option(help="uniform, sobol, random-orthant, two-corners, worst, source or examples")
    ] = "uniform",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-p", help="an option of the method, as path=value: model.kernel=rbf"),
    ] = None,
    problem_option: Annotated[
        list[str] | None,
        typer.Option("--problem-option", "-P", help="an option of the problem: noise_std=0.1"),
    ] = None,
    store: StoreOption = STORE,
    data: DataOption = DATA,
    device: DeviceOption = "cpu",
) -> None:
    """Run one trial by hand and print what it found."""
    from plumbline.options import parse
    from plumbline.specs import TrialSpec
    from plumbline.trials.runner import device_called, run_trials

    _one_thread()
    spec = parse(
        TrialSpec,
        {
            "problem": {"name": problem, "options": _settings(problem_option)},
            "method": {"name": method, "options": _settings(option)},
            "seed": seed,
            "budget": {"initial": {"design": design, "size": initial}, "rounds": rounds, "q": q},
        },
        "trial",
    )
    spec.check("trial")
    with _watching() as watch:
        (folder,) = run_trials([spec], store, data, watch, device_called(device))
    _print_trial(folder.table(spec, points=True))
    print(f"records: {folder.records_path}")
    if folder.failed:
        reason = json.loads(folder.error_path.read_text(encoding="utf-8"))["error"]
        raise PlumblineError(f"{reason} (see {folder.error_path}; `plumbline failures --forget` clears it)")


@app.command()
def methods(name: Annotated[str, typer.Argument(help="show the options of this one")] = "") -> None:
    """List the methods, a line each, or the options of one."""
    from plumbline.listings import print_all, print_one

    print_one("method", name) if name else print_all("method")


@app.command()
def problems(name: Annotated[str, typer.Argument(help="show the options of this one")] = "") -> None:
    """List the problems, a line each, or the options of one (ackley, or ackley-2)."""
    from plumbline.listings import print_all, print_one
    from plumbline.specs import ProblemRef

    print_one("problem", ProblemRef(name=name).name) if name else print_all("problem")


@app.command()
def plan(
    config: ConfigOption = CONFIG,
    chunks: Annotated[bool, typer.Option(help="print each job's --chunk instead")] = False,
    store: StoreOption = STORE,
    data: DataOption = DATA,
) -> None:
    """Say how many trials a preset has, how many are done, and what the rest will cost."""
    from plumbline.costs import print_plan

    loaded = _plan(config)
    if chunks:
        for _, name, _ in loaded.experiments():
            for chunk in loaded.chunks(name):
                print(chunk.model_dump_json())
        return
    print_plan(loaded, store, data)


@app.command()
def collect(
    experiment: str,
    output: OutputOption,
    snapshots: Annotated[Path, typer.Option(help="file to write the pictures of models to")],
    trials: TrialsOption = TRIALS,
    config: ConfigOption = CONFIG,
    store: StoreOption = STORE,
) -> None:
    """Put the records of an experiment's jobs together; refuse a grid with holes."""
    from plumbline.analysis.collect import Grid
    from plumbline.analysis.collect import collect as collect_records

    loaded = _plan(config)
    chunks = loaded.chunks(experiment)
    if not chunks:
        raise PlumblineError(f"{experiment} has no trials in preset {loaded.config.preset!r}")
    paths = [chunk.path(trials) for chunk in chunks]
    collect_records(paths, Grid.of(chunks), store, loaded.config.allow_incomplete, output, snapshots)


@app.command()
def illustrate(experiment: str, output: OutputOption, config: ConfigOption = CONFIG) -> None:
    """Compute what an experiment's figure shows without any trial."""
    from plumbline.illustrate import illustrate as compute
    from plumbline.illustrate import write

    _one_thread()
    write(output, compute(_plan(config), experiment))


@app.command()
def figure(
    experiment: str,
    output: Annotated[list[Path], typer.Option("--output", "-o", help="files to write; their endings say the format")],
    records: Annotated[Path | None, typer.Option(help="the experiment's records, where it has any")] = None,
    snapshots: Annotated[Path | None, typer.Option(help="the experiment's pictures of models")] = None,
    illustration: Annotated[Path | None, typer.Option(help="what `plumbline illustrate` wrote")] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Draw an experiment's figure."""
    from plumbline.analysis.draw import check_formats, columns_for, draw, evidence_of

    loaded = _plan(config)
    columns = columns_for(loaded, experiment, "figure")
    check_formats(output)
    draw(loaded, experiment, evidence_of(loaded, experiment, columns, records, snapshots, illustration), output)


@app.command()
def table(
    experiment: str,
    output: OutputOption,
    records: Annotated[Path | None, typer.Option(help="the experiment's records, where it has any")] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Write an experiment's table as CSV."""
    from plumbline.analysis.draw import columns_for, evidence_of, tabulate
    from plumbline.files import atomic

    loaded = _plan(config)
    columns = columns_for(loaded, experiment, "table")
    frame = tabulate(loaded, experiment, evidence_of(loaded, experiment, columns, records))
    with atomic(output) as part:
        frame.to_csv(part, index=False, float_format="%.6g")


@app.command()
def claims(
    folder: FolderArgument,
    output: OutputOption,
    config: ConfigOption = CONFIG,
) -> None:
    """Give a verdict on every claim that rests on the experiments of this run, from their collected records."""
    from plumbline.analysis.judge import judge_folder
    from plumbline.files import atomic

    loaded = _plan(config)
    frame = judge_folder(loaded, _folder(folder, "results"))
    with atomic(output) as part:
        frame.to_csv(part, index=False, float_format="%.6g")


@app.command()
def report(
    folder: FolderArgument,
    output: OutputOption,
    claims: Annotated[Path | None, typer.Option(help="the verdicts; those of the folder where none are given")] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Write the study's page: verdicts, figures, tables, failures, provenance."""
    from plumbline.analysis.report import write_report

    write_report(_plan(config), folder, output, claims or folder / "claims.csv")


@app.command()
def reference(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="names of experiments that were run; none: judge again what is kept")
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="results of the preset that ran them")] = None,
    config: ConfigOption = CONFIG,
    store: StoreOption = STORE,
    output: Annotated[Path, typer.Option("--output", "-o", help="folder of the reference results")] = REFERENCE,
) -> None:
    """Keep results for good: copy figures, tables, curves and runs with their provenance, and judge them."""
    from plumbline.analysis.reference import keep, keep_verdicts

    loaded = _plan(config)
    for name in experiments or ():
        if folder is None:
            raise PlumblineError("say whose results to keep: --folder results/<preset>")
        keep(loaded, name, _folder(folder, "results"), store, output)
    keep_verdicts(loaded, output)


@app.command()
def verdicts(
    claims: Annotated[Path, typer.Argument(help="a table of claims")] = Path("results/reference/claims.csv"),
    show: Annotated[
        Literal["table", "summary", "doubts"],
        typer.Option(help="a row a claim; the same in short, by document; or what is wrong with which verdicts"),
    ] = "table",
    config: ConfigOption = CONFIG,
) -> None:
    """Print the verdicts as Markdown."""
    from plumbline.analysis.reference import doubt_table, read_claims, read_doubts, verdict_summary, verdict_table

    found = read_claims(claims)
    if show == "doubts":
        print(doubt_table(read_doubts(claims)))
    elif show == "summary":
        print(verdict_summary(_plan(config).studies.values(), found, read_doubts(claims)))
    else:
        print(verdict_table(_plan(config).studies.values(), found))


@app.command()
def compare(
    experiment: str,
    method: Annotated[str, typer.Argument(help="the method that is looked at")],
    baseline: Annotated[str, typer.Argument(help="the method that it is compared with")],
    metric: Annotated[str, typer.Option(help="by this one alone; else by all that figure and table show")] = "",
    of: Annotated[Literal["last", "mean", "median"], typer.Option(help="of the rounds of each run")] = "last",
    folder: Annotated[Path | None, typer.Option(help="results of a preset; else what is kept is compared")] = None,
    config: ConfigOption = CONFIG,
    reference: Annotated[Path, typer.Option(help="folder of the reference results")] = REFERENCE,
) -> None:
    """Compare two methods of an experiment, seed by seed."""
    from plumbline.analysis.compare import comparisons, print_comparisons
    from plumbline.analysis.judge import asked_by_outputs, kept, ran

    loaded = _plan(config)
    loaded.study_of(experiment)
    if folder is None:
        found = kept(reference, experiment)
    else:
        records = _folder(folder, "results") / "records" / f"{experiment}.parquet"
        found = ran(loaded, experiment, records, asked_by_outputs(loaded, experiment))
    if found is None:
        raise PlumblineError(f"no runs of {experiment}: run it, and name its results: --folder results/<preset>")
    print_comparisons(comparisons(found.runs, method, baseline, metric, of), method, baseline)


@app.command()
def track(
    artifacts: Annotated[Path, typer.Option(help="results of the preset: figures and tables to attach")],
    trials: TrialsOption = TRIALS,
    config: ConfigOption = CONFIG,
    store: StoreOption = STORE,
    uri: Annotated[
        str, typer.Option(envvar="MLFLOW_TRACKING_URI", help="where to; this command must be its only writer")
    ] = "sqlite:///results/mlflow.db",
    data: DataOption = DATA,
) -> None:
    """Import finished trials, and how models were trained, into MLflow; what is there already stays as it is."""
    from plumbline.tracking import import_trials

    print(import_trials(_plan(config), trials, _folder(artifacts, "results"), store, uri, data))


@app.command()
def failures(
    forget: Annotated[bool, typer.Option("--forget", help="clear them, so that the next run tries again")] = False,
    store: StoreOption = STORE,
    trials: TrialsOption = TRIALS,
) -> None:
    """List the trials that failed, and why."""
    from plumbline.failures import failed_trials, forget_failures

    failed = failed_trials(_folder(store, "trials"))
    for folder, name, reason in failed:
        print(f"{name}: {reason}\n    {folder.error_path}")
    if forget:
        removed = forget_failures([folder for folder, _, _ in failed], trials)
        print(f"{len(failed)} failures forgotten, {len(removed)} jobs to run again: start snakemake")
    elif not failed:
        print("no trial has failed")


@app.command()
def schema(
    output: Annotated[Path, typer.Option("--output", "-o", help="folder of the schemas")] = Path("config/schemas"),
) -> None:
    """Write the JSON schemas of the YAML files, by which editors complete and check."""
    from plumbline.schemas import write_schemas

    for path in write_schemas(output):
        print(path)


def _settings(pairs: list[str] | None) -> dict[str, Any]:
    """Return nested options of `a.b=value` pairs; values are YAML."""
    import yaml

    options: dict[str, Any] = {}
    for pair in pairs or []:
        path, equals, value = pair.partition("=")
        if not equals:
            raise PlumblineError(f"option {pair!r}: write it as name=value")
        *parents, leaf = path.split(".")
        inner = options
        for parent in parents:
            inner = inner.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise PlumblineError(f"option {pair!r}: {parent!r} has a value of its own already")
        try:
            inner[leaf] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise PlumblineError(f"option {pair!r}: {' '.join(str(error).split())}") from error
    return options


def _json(text: str, source: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise PlumblineError(f"{source} is no JSON: {error}") from error


@contextmanager
def _watching() -> "Iterator[Watch]":
    """Yield what makes those who watch a trial: a bar in a terminal, else a log; MLflow too where a server is."""
    from plumbline.observers import LineLog, ProgressBars

    bars = ProgressBars() if sys.stderr.isatty() else None
    uri = os.environ.get("MLFLOW_TRACKING_URI", "")
    makers: list[Any] = [bars.bar if bars else LineLog]
    if uri.startswith(("http://", "https://")):
        from plumbline.tracking import LiveRun

        makers.append(lambda: LiveRun(uri))
    try:
        yield lambda: [make() for make in makers]
    finally:
        if bars:
            bars.close()


SHOWN = 40
"""Evaluations that `plumbline trial` prints: as many of the first as of the last."""


def _print_trial(table: Any) -> None:
    """Print the evaluations of a trial: of one outcome with the best and the regret so far, of several with each."""
    import pyarrow.compute as compute
    from rich.console import Console
    from rich.table import Table

    from plumbline.measures.frames import entries, frame_of
    from plumbline.measures.metrics import metric

    rows = frame_of(table.filter(compute.equal(table["status"], "ok")))  # not the row that says why it stopped
    if rows.empty:
        return
    roles = rows["roles"].iloc[0]
    outcomes = entries(rows["y"])
    several = sum(role == "objective" for role in roles) > 1
    running = ["hypervolume"] if several else ["best_y", "regret"] if len(roles) == 1 else ["violation", "best_f"]
    names = ["y"] if len(roles) == 1 else [f"y {i + 1}" for i in range(len(roles))]
    columns = [*outcomes.T, *(metric(rows, name).to_numpy() for name in (*running, "pit")), rows["round_seconds"]]
    grid = Table("round", "x", *names, *(name.replace("_", " ") for name in running), "cdf of y", "seconds")
    for i, (iteration, x, *numbers) in enumerate(
        zip(rows["iteration"], table["x"].to_pylist(), *columns, strict=False)
    ):
        if SHOWN // 2 <= i < len(rows) - SHOWN // 2:
            if i == SHOWN // 2:
                grid.add_row("...", f"{len(rows) - SHOWN} more", *[""] * len(numbers))
            continue
        point = " ".join(f"{value:.4g}" for value in x[:6]) + (" ..." if len(x) > 6 else "")
        grid.add_row(str(iteration), point, *("–" if isnan(value) else f"{value:.4g}" for value in numbers))
    Console().print(grid)


def main() -> None:
    """Run the command line; what users are to read is one line, not a traceback."""
    try:
        app(standalone_mode=False)
    except PlumblineError as error:
        _fail(str(error))
    except OSError as error:
        if error.errno is None:
            raise
        _fail(describe_os_error(error))
    except typer.Exit as error:
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        _fail(f"{error.format_message()} (see --help)")  # a mistake on the command line


def _fail(message: str) -> None:
    print(f"plumbline: error: {message}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
