"""Commands about results: costs of runs, failed trials, comparisons of methods, verdicts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from plumbline.cli.app import (
    CONFIG,
    DATA,
    REFERENCE,
    STORE,
    TRIALS,
    USE,
    ConfigOption,
    CsvOption,
    DataOption,
    StoreOption,
    TrialsOption,
    app,
    existing_folder,
    path_argument,
    path_option,
    read_plan,
)

if TYPE_CHECKING:
    import pandas as pd

    from plumbline.study.resolved import ResolvedRun


@app.command(rich_help_panel=USE)
def plan(
    config: ConfigOption = CONFIG,
    chunks: Annotated[bool, typer.Option(help="print each job's --chunk instead")] = False,
    store: StoreOption = STORE,
    data: DataOption = DATA,
) -> None:
    """Print the number of trials of a preset, those done, and the estimated cost of the others."""
    run = read_plan(config).run
    if chunks:
        for experiment in run.experiments.values():
            for chunk in experiment.chunks:
                print(chunk.model_dump_json())
        return
    print_plan(run, store, data)


def print_plan(run: "ResolvedRun", store: Path, data: Path) -> None:
    """Print the estimates of a run as a table, with the sum."""
    from plumbline.cli.tables import print_table
    from plumbline.study.costs import estimates, trainings

    rows = [*estimates(run, store, data), *trainings(run, data)]
    numbers = ("trials", "done", "CPU", "GPU", "unmeasured")
    cells = [
        (row.experiment, row.title, row.trials, row.done, row.cpu_hours, row.gpu_hours, row.unknown) for row in rows
    ]
    sums = [sum(column) for column in zip(*(row[2:] for row in cells), strict=True)] or [0] * len(numbers)
    cells.append(("all", "shared trials are counted in each", *sums))  # type: ignore[arg-type]
    print_table(
        ["experiment", "title", *numbers],
        (
            [name, title, str(trials), str(done), _hours(cpu), _hours(gpu), str(unknown)]
            for name, title, trials, done, cpu, gpu, unknown in cells
        ),
        numbers,
        f"preset {run.config.preset}, {run.config.data} data",
    )
    print(
        "CPU and GPU: time that is left, on one core, from seconds measured in earlier trials, and for models that are "
        "not trained yet as config/models.yaml expects; trials that are unmeasured are not counted"
    )


def _hours(hours: float) -> str:
    return f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.1f} min"


@app.command(rich_help_panel=USE)
def failures(
    forget: Annotated[bool, typer.Option("--forget", help="clear them, so that the next run tries again")] = False,
    store: StoreOption = STORE,
    trials: TrialsOption = TRIALS,
) -> None:
    """List the failed trials with their errors."""
    from plumbline.store.failures import failed_trials, forget_failures

    failed = failed_trials(existing_folder(store, "trials"))
    for folder, name, reason in failed:
        print(f"{name}: {reason}\n    {folder.error_path}")
    if forget:
        removed = forget_failures([folder for folder, _, _ in failed], trials)
        print(f"{len(failed)} failures forgotten, {len(removed)} jobs to run again: start snakemake")
    elif not failed:
        print("no trial has failed")


@app.command(rich_help_panel=USE)
def compare(
    experiment: Annotated[str, typer.Argument(help="of any study in config/studies")],
    method: Annotated[str, typer.Argument(help="the method that is looked at")],
    baseline: Annotated[str, typer.Argument(help="the method that it is compared with")],
    metric: Annotated[str, typer.Option(help="by this one alone; else by those of figure, table and claims")] = "",
    of: Annotated[Literal["last", "mean", "median"], typer.Option(help="of the rounds of each run")] = "last",
    folder: Annotated[Path | None, path_option(help="results of a preset; else the published runs")] = None,
    csv: CsvOption = False,
) -> None:
    """Compare two methods of an experiment, seed by seed."""
    from plumbline.api import compare as table
    from plumbline.cli.tables import print_frame

    comparison = table(experiment, method, baseline, metric=metric, of=of, folder=folder)
    if csv:
        print_frame(comparison, csv=True)
    else:
        print_comparison(comparison, method, baseline)


def print_comparison(comparison: "pd.DataFrame", method: str, baseline: str) -> None:
    """Print one table a metric of the result of `plumbline.api.compare`."""
    from plumbline.cli.tables import print_table

    numbers = [method, baseline, "difference", "95% interval", "p", "higher"]
    for name, rows in comparison.groupby("metric", sort=False):
        better = rows["better"].iloc[0]
        title = f"{name}, {_counted(rows['seeds'])}{f' ({better} is better)' if better else ''}"
        cells = [_cells(one) for _, one in rows.iterrows()]
        print_table(["task", *numbers], cells, numbers, title)
        print()
    print(f"difference: mean over seeds of {method} minus {baseline}; p: two-sided, of one comparison")
    print(f"higher: the share of seeds where {method} has the higher value")


def _counted(seeds: "pd.Series") -> str:
    """Return how many seeds the rows have, in words."""
    counts = sorted(set(seeds))
    return f"{' or '.join(map(str, counts))} seed{'s' * (counts != [1])}"


def _cells(one: "pd.Series") -> list[str]:
    """Return a comparison in words, in the order of the columns."""
    from math import isfinite

    from plumbline.cli.tables import written

    low, high = one["low"], one["high"]
    return [
        one["task"],
        written(one["method"]),
        written(one["baseline"]),
        written(one["difference"], 3),
        f"{low:.3g} to {high:.3g}" if isfinite(low) and isfinite(high) else "–",
        f"{one['p']:.2g}" if one["p"] >= 1e-3 else "<.001",
        f"{one['higher']:.0%}",
    ]


@app.command(rich_help_panel=USE)
def verdicts(
    claims: Annotated[Path, path_argument(help="a table of claims")] = REFERENCE / "claims.csv",
    show: Annotated[
        Literal["table", "summary", "doubts"],
        typer.Option(help="a row a claim; the number of each verdict by document; or the doubts about verdicts"),
    ] = "table",
    config: ConfigOption = CONFIG,
    markdown: Annotated[bool, typer.Option("--markdown", help="print Markdown, as the others always are")] = False,
    csv: CsvOption = False,
) -> None:
    """Print the verdicts on the papers' claims."""
    from plumbline.analysis.publish.reference import (
        doubt_table,
        read_claims,
        read_doubts,
        verdict_rows,
        verdict_summary,
        verdict_table,
    )
    from plumbline.cli.tables import print_frame

    table_of_claims, doubts = read_claims(claims), read_doubts(claims)
    if show == "doubts":
        print_frame(doubts, csv=True) if csv else print(doubt_table(doubts))
        return
    studies = read_plan(config).studies.values()
    if show == "summary":
        print(verdict_summary(studies, table_of_claims))
    elif markdown:
        print(verdict_table(studies, table_of_claims, doubts))
    else:
        rows = verdict_rows(studies, table_of_claims, doubts)
        print_frame(rows if csv else rows[["claim", "verdict", "in_doubt", "statement", "estimate", "seeds"]], csv)
