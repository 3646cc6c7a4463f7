"""Commands about results: costs of runs, runs in MLflow, failed trials, verdicts."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from plumbline.cli.app import (
    CONFIG,
    USE,
    ConfigOption,
    CsvOption,
    DataOption,
    StoreOption,
    TrialsOption,
    app,
    existing_folder,
    path_argument,
    places,
    printing_aside,
    read_plan,
    read_plan_and_home,
)
from plumbline.core.errors import PlumblineError
from plumbline.core.places import REFERENCE, own_or_shipped
from plumbline.core.words import counted
from plumbline.tracking.addresses import PORT, local

if TYPE_CHECKING:
    from plumbline.study.resolved import ResolvedRun


@app.command(rich_help_panel=USE)
def plan(
    config: ConfigOption = CONFIG,
    chunks: Annotated[bool, typer.Option(help="print the --chunk argument of each job instead")] = False,
    store: StoreOption = None,
    data: DataOption = None,
) -> None:
    """Print the number of trials of a preset, those done, and the estimated cost of the others."""
    with printing_aside(chunks):
        loaded = read_plan(config)
    run = loaded.run
    if chunks:
        for experiment in run.experiments.values():
            for chunk in experiment.chunks:
                print(chunk.model_dump_json())
        return
    at = places(store, data=data, config=loaded.config)
    print_plan(run, at.store, at.data)


def print_plan(run: "ResolvedRun", store: Path, data: Path) -> None:
    """Print the estimates of a run as a table, whose last row is of everything."""
    from plumbline.cli.tables import print_table, print_words
    from plumbline.store.folder import failures_command
    from plumbline.study.costs import estimates

    rows = estimates(run, store, data)
    some_failed = any(row.failed for row in rows)
    numbers = ["trials", "done", *["failed"] * some_failed, "CPU", "GPU", "unmeasured"]
    print_table(
        ["experiment", "title", *numbers],
        (
            [
                row.name,
                row.title,
                *map(str, (row.trials, row.done, *[row.failed] * some_failed)),
                *map(_hours, (row.cpu_hours, row.gpu_hours)),
                str(row.unknown),
            ]
            for row in rows
        ),
        numbers,
        f"preset {run.config.preset}, {run.config.data} data",
        below="title",
    )
    print_words(
        "CPU and GPU: time that is left, on one core, from seconds measured in earlier trials, and for models that are "
        "not trained yet as config/models.yaml expects; trials that are unmeasured are not counted"
    )
    if some_failed:
        command = failures_command(store)
        print_words(f"failed: of those done; `{command}` says why, and `{command} --forget` lets them run again")


def _hours(hours: float) -> str:
    return f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.1f} min"


@app.command(rich_help_panel=USE)
def crate(
    output: Annotated[Path, path_argument(help="a .zip file or a folder that does not exist yet")],
    config: ConfigOption = CONFIG,
    by: Annotated[str, typer.Option("--by", help="who ran it; by default nobody is named")] = "",
) -> None:
    """Pack a preset's results, with workflow and configuration, as an RO-Crate."""
    from plumbline.analysis.publish.crate import write_crate

    plan, home = read_plan_and_home(config)
    print(write_crate(plan.run, home, output, by))


@app.command(rich_help_panel=USE)
def ui(
    uri: Annotated[
        str | None,
        typer.Option(
            help="sqlite:/// and the path of a database; default: results/mlflow.db in the workspace", metavar="<uri>"
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="port of this machine")] = PORT,
) -> None:
    """Show runs in MLflow, in a browser on this machine, until Ctrl-C."""
    from plumbline.tracking.serving import pages, serving

    uri = uri or local()
    try:
        with serving(uri, port) as server:
            print(f"MLflow: {server.address}/#/experiments   (Ctrl-C ends it)", flush=True)
            for name, page in pages(uri):
                print(f"  {name:32} {server.address}/{page}", flush=True)
            server.wait()
    except KeyboardInterrupt:
        print()


@app.command(rich_help_panel=USE)
def failures(
    forget: Annotated[
        bool, typer.Option("--forget", help="clear the failures, so that the next run tries again")
    ] = False,
    store: StoreOption = None,
    trials: TrialsOption = None,
) -> None:
    """List the failed trials with their errors."""
    from plumbline.store.failures import failed_trials, forget_failures

    at = places(store, trials)
    failed = failed_trials(existing_folder(at.store, "trials"))
    removed = forget_failures([folder for folder, _, _ in failed], at.trials) if forget else []
    # Afterwards: a pipe may end what is printed.
    for folder, name, reason in failed:
        print(f"{name}: {reason}\n    {folder.error_path}")
    if forget:
        again = f"{counted(len(removed), 'job')} to run again: start snakemake"
        asked = "the trials run again when they are asked for"
        print(f"{counted(len(failed), 'failure')} forgotten; {again if removed else asked}")
    elif not failed:
        print("no trial has failed")


VERDICT_TERMS = (
    "2 hold, 6 open: of the parts of a claim, such as methods and tasks; a part that is open neither holds nor fails",
    "supports if: the values of an estimate that support the claim",
    "in brackets: 95% intervals; in doubt: `plumbline verdicts --show doubts` says why",
    "`plumbline show claim` and the name of a claim: all of it, with the experiments that it rests on",
)
"""What the words in the table of verdicts mean."""


def refuse_claim(name: str, claims: Iterable[str]) -> None:
    """Raise PlumblineError, with what shows it, if a name is that of a claim."""
    for claim in claims:
        if claim.casefold() == name.casefold():
            raise PlumblineError(f"{claim} is a claim: `plumbline show claim {claim}` shows it")


@app.command(rich_help_panel=USE)
def verdicts(
    table: Annotated[
        Path | None,
        path_argument(
            help=f"verdicts that `plumbline claims` wrote; default: {REFERENCE / 'claims.csv'}, with claims not in "
            "it. `plumbline show claim` has all about one claim"
        ),
    ] = None,
    show: Annotated[
        Literal["table", "summary", "doubts"],
        typer.Option(help="a row for each claim; the number of each verdict by paper; or the doubts about verdicts"),
    ] = "table",
    config: ConfigOption = CONFIG,
    markdown: Annotated[bool, typer.Option("--markdown", help="print Markdown")] = False,
    csv: CsvOption = False,
) -> None:
    """Print the verdicts on the papers' claims."""
    from plumbline.analysis.publish.reference_verdicts import read_claims, read_doubts
    from plumbline.analysis.publish.verdict_tables import (
        doubt_table,
        verdict_counts,
        verdict_rows,
        verdict_summary,
        verdict_table,
    )
    from plumbline.api.listings import claim_names
    from plumbline.api.repository import studies_with_claims
    from plumbline.cli.tables import print_frame, print_words

    if table is not None and not table.exists():
        refuse_claim(str(table), claim_names())
    named, table = table is not None, table or own_or_shipped(REFERENCE / "claims.csv")
    claims, doubts = read_claims(table), read_doubts(table)
    if show == "doubts":
        print(doubt_table(doubts)) if markdown else print_frame(doubts, csv)
        return
    with printing_aside(csv):
        plan, home = read_plan_and_home(config)
    studies = list(plan.studies.values())
    if named:
        studies = studies_with_claims(home, set(claims["claim"]), plan.studies)
        if absent := sorted(set(claims["claim"]).difference(*(study.claims for study in studies))):
            warnings.warn(f"{table}: no study has {absent[0]}, which is left out", stacklevel=1)
    if show == "summary":
        if markdown:
            print(verdict_summary(studies, claims))
        else:
            print_frame(verdict_counts(studies, claims), csv)
    elif markdown:
        print(verdict_table(studies, claims, doubts))
    else:
        rows = verdict_rows(studies, claims, doubts, named=csv)
        print_frame(rows if csv else rows[["claim", "verdict", "in_doubt", "statement", "estimate", "seeds"]], csv)
        if not csv:
            print()
            for line in VERDICT_TERMS:
                print_words(line)
