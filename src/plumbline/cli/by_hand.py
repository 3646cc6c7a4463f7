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

    loaded = read_plan(config)
    if chunks:
        for _, name, _ in loaded.experiments():
            for chunk in loaded.chunks(name):
                print(chunk.model_dump_json())
        return
    print_plan(loaded, store, data)


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
        keep(loaded, name, existing_folder(folder, "results"), store, output)
    keep_verdicts(loaded, output)


@app.command()
def verdicts(
    claims: Annotated[Path, typer.Argument(help="a table of claims")] = Path("results/reference/claims.csv"),
    show: Annotated[
        Literal["table", "summary", "doubts"],
        typer.Option(help="a row a claim; the number of each verdict by document; or the doubts about verdicts"),
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

    found, doubts = read_claims(claims), read_doubts(claims)
    if show == "doubts":
        print(doubt_table(doubts))
    elif show == "summary":
        print(verdict_summary(read_plan(config).studies.values(), found))
    else:
        print(verdict_table(read_plan(config).studies.values(), found, doubts))


@app.command()
def pages(
    templates: Annotated[Path, typer.Option(help="folder of the templates")] = Path("docs/templates/results"),
    output: Annotated[Path, typer.Option("--output", "-o", help="folder of the pages")] = Path("docs/results"),
    config: ConfigOption = CONFIG,
    reference: Annotated[Path, typer.Option(help="folder of the reference results")] = REFERENCE,
) -> None:
    """Write the result pages from their templates, with the numbers of the reference results."""
    from plumbline.analysis.publish.result_pages import ReferenceNumbers, result_pages, write_result_pages

    numbers = ReferenceNumbers(existing_folder(reference, "reference results"), read_plan(config).studies.values())
    written = write_result_pages(result_pages(existing_folder(templates, "templates"), numbers), output)
    print("\n".join(map(str, written)) or "all pages are current")


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
    from plumbline.analysis.verdicts.judge import asked_by_outputs, kept, ran

    loaded = read_plan(config)
    loaded.study_of(experiment)
    if folder is None:
        found = kept(reference, experiment)
    else:
        records = existing_folder(folder, "results") / "records" / f"{experiment}.parquet"
        found = ran(loaded, experiment, records, asked_by_outputs(loaded, experiment))
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
