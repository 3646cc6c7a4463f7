"""Commands for people: listings, plans, verdicts, comparisons."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from plumbline.cli.app import (
    CONFIG,
    DATA,
    REFERENCE,
    STORE,
    TRIALS,
    ConfigOption,
    DataOption,
    StoreOption,
    TrialsOption,
    app,
    existing_folder,
    read_plan,
)
from plumbline.core.errors import PlumblineError


@app.command()
def methods(name: Annotated[str, typer.Argument(help="show the options of this one")] = "") -> None:
    """List the methods, a line each, or the options of one."""
    from plumbline.cli.listings import print_all, print_one

    print_one("method", name) if name else print_all("method")


@app.command()
def problems(name: Annotated[str, typer.Argument(help="show the options of this one")] = "") -> None:
    """List the problems, a line each, or the options of one (ackley, or ackley-2)."""
    from plumbline.cli.listings import print_all, print_one
    from plumbline.registry.references import ProblemRef

    print_one("problem", ProblemRef(name=name).name) if name else print_all("problem")


@app.command()
def plan(
    config: ConfigOption = CONFIG,
    chunks: Annotated[bool, typer.Option(help="print each job's --chunk instead")] = False,
    store: StoreOption = STORE,
    data: DataOption = DATA,
) -> None:
    """Say how many trials a preset has, how many are done, and what the rest will cost."""
    from plumbline.study.costs import print_plan

    run = read_plan(config).run
    if chunks:
        for experiment in run.experiments.values():
            for chunk in experiment.chunks:
                print(chunk.model_dump_json())
        return
    print_plan(run, store, data)


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
    from plumbline.analysis.publish.reference import keep, keep_verdicts

    loaded = read_plan(config)
    for name in experiments or ():
        if folder is None:
            raise PlumblineError("say whose results to keep: --folder results/<preset>")
        keep(loaded.resolve(name), existing_folder(folder, "results"), store, output)
    keep_verdicts(loaded.studies.values(), output)


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
    from plumbline.analysis.publish.reference import (
        doubt_table,
        read_claims,
        read_doubts,
        verdict_summary,
        verdict_table,
    )

    found = read_claims(claims)
    if show == "doubts":
        print(doubt_table(read_doubts(claims)))
    elif show == "summary":
        print(verdict_summary(read_plan(config).studies.values(), found, read_doubts(claims)))
    else:
        print(verdict_table(read_plan(config).studies.values(), found))


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
    from plumbline.analysis.comparisons.compare import comparisons, print_comparisons
    from plumbline.analysis.verdicts.judge import runs_for_outputs, runs_from_records, runs_from_reference

    loaded = read_plan(config)
    loaded.study_of(experiment)
    if folder is None:
        found = runs_from_reference(reference, experiment)
    else:
        records = existing_folder(folder, "results") / "records" / f"{experiment}.parquet"
        resolved = loaded.resolve(experiment)
        found = runs_from_records(resolved, records, runs_for_outputs(resolved))
    if found is None:
        raise PlumblineError(f"no runs of {experiment}: run it, and name its results: --folder results/<preset>")
    print_comparisons(comparisons(found.runs, method, baseline, metric, of), method, baseline)


@app.command()
def failures(
    forget: Annotated[bool, typer.Option("--forget", help="clear them, so that the next run tries again")] = False,
    store: StoreOption = STORE,
    trials: TrialsOption = TRIALS,
) -> None:
    """List the trials that failed, and why."""
    from plumbline.store.failures import failed_trials, forget_failures

    failed = failed_trials(existing_folder(store, "trials"))
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
    from plumbline.study.schemas import write_schemas

    for path in write_schemas(output):
        print(path)
