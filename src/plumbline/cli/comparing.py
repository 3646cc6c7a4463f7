"""Commands that compare methods seed by seed, and compute how many seeds a comparison needs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from plumbline.analysis.comparisons.numbers import interval, intervals_in_words, probability
from plumbline.cli.app import NAMES, USE, app, file_option, path_option, refuse_losses, say_written
from plumbline.cli.completing import complete, complete_list
from plumbline.core.words import counted

if TYPE_CHECKING:
    import pandas as pd

METHODS_HELP = "two or more, separated by commas; the first is the baseline"
MethodsOption = Annotated[str, typer.Option(help=METHODS_HELP, metavar=NAMES, autocompletion=complete_list("method"))]
MetricOption = Annotated[
    str,
    typer.Option(
        help="a metric (`plumbline classes metric`); default: those of the source",
        autocompletion=complete("metric class"),
    ),
]
OfOption = Annotated[Literal["last", "mean", "median"], typer.Option(help="how the rounds of a run become one number")]
ExperimentOption = Annotated[
    str,
    typer.Option(help="an experiment of config/studies whose runs are used", autocompletion=complete("experiment")),
]
FolderOption = Annotated[Path | None, path_option(help="results of a preset, with records, or an edition of the atlas")]
StoreOption = Annotated[
    Path | None, path_option(help="only the trials of this store; default: results/store, or the reference results")
]
CsvFile = Annotated[Path | None, file_option("--csv", help="write the table as CSV")]
JsonFile = Annotated[Path | None, file_option("--json", help="write the table as JSON, a mapping for each row")]
LatexFile = Annotated[Path | None, file_option("--latex", help="write the table as LaTeX, with booktabs")]


@app.command(rich_help_panel=USE)
def compare(
    methods: MethodsOption,
    task: Annotated[
        str,
        typer.Option(
            help="a task on which all have runs; default: all tasks of the experiment", autocompletion=complete("task")
        ),
    ] = "",
    metric: MetricOption = "",
    of: OfOption = "last",
    location: Annotated[Literal["mean", "median"], typer.Option(help="the statistic of runs over seeds")] = "mean",
    experiment: ExperimentOption = "",
    folder: FolderOption = None,
    store: StoreOption = None,
    csv: CsvFile = None,
    json: JsonFile = None,
    latex: LatexFile = None,
) -> None:
    """Compare methods on a task, seed by seed.

    The p-values corrected by Holm's method are for all comparisons of the call.
    """
    from plumbline.analysis.comparisons.latex import latex_table
    from plumbline.api import compare as table
    from plumbline.core.files import write_text

    refuse_losses([path for path in (csv, json, latex) if path is not None])
    frame = table(
        methods,
        task,
        metric=metric,
        of=of,
        location=location,
        experiment=experiment,
        folder=folder,
        store=store,
    )
    write_frame(frame, csv, json)  # first: a pipe may end what is printed
    if latex is not None:
        write_text(latex, latex_table(frame, location))
    print_comparison(frame)
    say_written(csv, json, latex)


@app.command(rich_help_panel=USE)
def seeds(
    task: Annotated[str, typer.Option(help="a task on which all have runs", autocompletion=complete("task"))],
    methods: MethodsOption,
    effect: Annotated[
        str, typer.Option(help="a share of the baseline's mean, or a difference: 10% or 0.5", metavar="<size>")
    ] = "10%",
    metric: MetricOption = "",
    of: OfOption = "last",
    given: Annotated[int, typer.Option(min=2, max=100_000, help="a number of seeds whose power is printed too")] = 5,
    experiment: ExperimentOption = "",
    folder: FolderOption = None,
    store: StoreOption = None,
    csv: CsvFile = None,
    json: JsonFile = None,
) -> None:
    """Print how many seeds a comparison needs."""
    from plumbline.api import seeds as table

    refuse_losses([path for path in (csv, json) if path is not None])
    frame = table(
        methods,
        task,
        effect=effect,
        metric=metric,
        of=of,
        given=given,
        experiment=experiment,
        folder=folder,
        store=store,
    )
    write_frame(frame, csv, json)  # first: a pipe may end what is printed
    print_seeds(frame)
    say_written(csv, json)


def write_frame(frame: "pd.DataFrame", csv: Path | None, json: Path | None) -> None:
    """Write a result as CSV and as JSON, where a file is named."""
    from plumbline.core.files import write_text

    if csv is not None:
        write_text(csv, frame.to_csv(index=False, float_format="%.6g"))
    if json is not None:
        write_text(json, frame.to_json(orient="records", indent=1) + "\n")


def print_comparison(frame: "pd.DataFrame") -> None:
    """Print the result of `plumbline.api.compare`: one table a metric, and a task where there are several."""
    from plumbline.analysis.comparisons.latex import ends_of
    from plumbline.cli.tables import print_words

    location = frame.attrs["location"]
    for (metric, task), rows in frame.groupby(["metric", "task"], sort=False):
        better = rows["better"].iloc[0]
        print(f"{metric} on {task}{f' ({better} is better)' if better else ''}")
        records = rows.to_dict("records")
        for line in comparison_lines(records, location):
            print(line)
        for line in unpaired(records):
            print(line)
        print()
    baseline = next(name for name in frame["baseline"] if name)
    for line in (
        f"runs: {frame.attrs['source']}",
        f"difference: {location} of the method minus {baseline}, paired by seed",
        intervals_in_words(ends_of(frame)),
        "p: two-sided, of one comparison",
        f"Holm: p corrected for the number of comparisons above ({frame['p'].notna().sum()})",
    ):
        print_words(line)


def comparison_lines(records: Sequence[dict[Any, Any]], location: str) -> list[str]:
    """Return the lines of a table; intervals are below their estimates where the terminal is too narrow."""
    from plumbline.cli.tables import table_lines, terminal_width, written

    numbers = ["seeds", location, "difference", "p", "Holm"]
    headers = ["method", *numbers]
    width = terminal_width()
    wide, narrow = [], []
    for row in records:
        value, apart = written(row["value"]), written(row["difference"], 4)
        own, other = interval(row["low"], row["high"]), interval(row["difference_low"], row["difference_high"])
        p = probability(row["p"]), probability(row["p_corrected"])
        wide.append([row["method"], str(row["seeds"]), f"{value} {own}".strip(), f"{apart} {other}".strip(), *p])
        narrow.append([row["method"], str(row["seeds"]), value, apart, *p])
        narrow.append(["", "", own, other, "", ""])
    lines = table_lines(headers, wide, numbers, width)
    return lines if max(map(len, lines)) <= width else table_lines(headers, narrow, numbers, width)


def unpaired(records: Sequence[dict[Any, Any]]) -> list[str]:
    """Return a line for each method whose seeds are not the baseline's."""
    first, *others = records
    return [
        f"{row['method']}: paired with {first['method']} in {counted(row['pairs'], 'seed')} of {row['seeds']} and "
        f"{first['seeds']}"
        for row in others
        if row["pairs"] < max(row["seeds"], first["seeds"])
    ]


def print_seeds(frame: "pd.DataFrame") -> None:
    """Print the result of `plumbline.api.seeds`: one table a metric, and what a given number of seeds sees."""
    from plumbline.cli.tables import print_table, print_words, written

    numbers = ["pairs", "SD", "r", "80% power", "90% power"]
    for metric, rows in frame.groupby("metric", sort=False):
        first = rows.iloc[0]
        better = f" ({first['better']} is better)" if first["better"] else ""
        print(f"{metric} on {first['task']}{better}")
        cells, notes = [], []
        for method, one in rows.groupby("method", sort=False):
            powers = one.to_dict("records")
            row = powers[0]
            needed = [f"{count(each['seeds'])} [{count(each['low'])}, {count(each['high'])}]" for each in powers]
            cells.append(
                [str(method), str(row["pairs"]), written(row["deviation"], 3), written(row["correlation"], 2), *needed]
            )
            notes.append(
                f"with {row['given']} seeds an effect of {written(row['effect'], 3)} ({method} minus "
                f"{row['baseline']}) is seen in {100 * row['seen']:.0f} of 100 studies"
            )
        print_table(["method", *numbers], cells, numbers)
        for note in notes:
            print_words(note)
        print()
    print_words(f"runs: {frame.attrs['source']}")
    print_words("pairs: seeds in common; SD: of the differences; r: correlation of both methods over seeds")
    print_words("power: the seeds it takes, with the 95% interval of a bootstrap over the pairs")


def count(seeds: float) -> str:
    """Return a number of seeds."""
    return f"{seeds:.0f}" if seeds < float("inf") else ">1000"
