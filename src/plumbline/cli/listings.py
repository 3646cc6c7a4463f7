"""Commands that list entries and registered names, and show them resolved."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.cli.app import USE, CsvOption, app, path_option, printing_aside
from plumbline.cli.completing import complete, complete_class, complete_name
from plumbline.core.errors import PlumblineError
from plumbline.core.places import own

if TYPE_CHECKING:
    from plumbline.api.listings import Listing

FilterArgument = Annotated[str, typer.Argument(help="show only those of this paper, or with this text in their name")]


@app.command(rich_help_panel=USE)
def methods(part: FilterArgument = "", csv: CsvOption = False) -> None:
    """List the methods: the entries of config/methods, by paper.

    A method whose libraries are not installed is marked.
    """
    from plumbline.api.listings import listed_methods

    _print_by_paper(listed_methods, "method", part, csv)


@app.command(rich_help_panel=USE)
def tasks(part: FilterArgument = "", csv: CsvOption = False) -> None:
    """List the tasks: the entries of config/tasks, by paper."""
    from plumbline.api.listings import listed_tasks

    _print_by_paper(listed_tasks, "task", part, csv)


@app.command(rich_help_panel=USE)
def experiments(part: FilterArgument = "", csv: CsvOption = False) -> None:
    """List the experiments, by paper."""
    from plumbline.api.listings import listed_experiments

    _print_by_paper(listed_experiments, "experiment", part, csv)


def _print_by_paper(listed: "Callable[[], Listing]", kind: str, part: str, csv: bool) -> None:
    from plumbline.cli.tables import print_csv, print_table, written

    with printing_aside(csv):
        listing = listed()
    rows = [dict(zip(listing.columns, row, strict=True)) for row in listing.rows]
    papers = list(dict.fromkeys(row["paper"] for row in rows))
    if part:
        of_paper = [row for row in rows if row["paper"] == part]
        rows = of_paper or [row for row in rows if part.lower() in row[kind].lower()]
        if not rows:
            raise PlumblineError(f"no {kind} with {part!r} in its name, and no such paper; papers: {', '.join(papers)}")
    if csv:
        print_csv(listing.columns, (row.values() for row in rows))
        return
    for row in rows:
        if not row.get("installed", True):
            row["class"] += " (not installed)"
    shown = [name for name in listing.columns if name not in ("paper", "entry", "installed")]
    numbers = [name for name in shown if rows and type(rows[0][name]) in (int, float)]
    chosen = [paper for paper in papers if any(row["paper"] == paper for row in rows)]
    for i, paper in enumerate(chosen):
        cells = [[written(row[name]) for name in shown] for row in rows if row["paper"] == paper]
        print_table(shown, cells, numbers, f"{chr(10) * bool(i)}{paper}", below="title")


@app.command(rich_help_panel=USE)
def show(
    kind: Annotated[str, typer.Argument(help="method, task, experiment or claim", autocompletion=complete("kind"))],
    name: Annotated[
        str,
        typer.Argument(
            help="as `plumbline methods`, `tasks`, `experiments` or `verdicts` list it", autocompletion=complete_name
        ),
    ],
) -> None:
    """Show a method, a task, an experiment or a claim in full, with the origin of each value."""
    from plumbline.api.showing import Shown, lines_of, resolve
    from plumbline.cli.tables import terminal_width

    wanted: Shown = kind  # type: ignore[assignment]  # `resolve` checks it
    print("\n".join(lines_of(resolve(wanted, name), min(terminal_width(), 100))))


@app.command(rich_help_panel=USE)
def classes(
    kind: Annotated[
        str,
        typer.Argument(
            help="method, problem, design, trainer, illustration, figure, table, metric or statistic; default: all",
            autocompletion=complete("kind of class"),
        ),
    ] = "",
    name: Annotated[str, typer.Argument(help="show the options of this one", autocompletion=complete_class)] = "",
    csv: CsvOption = False,
) -> None:
    """List the registered classes and functions that entries name, or the options of one."""
    from plumbline.api import classes as table
    from plumbline.cli.tables import print_frame
    from plumbline.registry.catalogue import catalogue
    from plumbline.registry.references import ProblemRef

    if kind == "problem" and name:
        name = ProblemRef(name=name).name  # ackley-2 is ackley
    with printing_aside(csv):
        frame = table(kind, name)
    if csv:
        print_frame(frame, csv=True)
    elif name:
        about = table(kind).set_index("name").loc[name]
        print(f"{name}  {about['summary']}\n{about['module']}")
        if kind == "method":
            company = {"bases or members": catalogue().bases(name), "base or member of": catalogue().wrappers(name)}
            print(*(f"{title}: {', '.join(names)}" for title, names in company.items() if names), sep="\n")
        if frame.empty:
            print("no options")
        else:
            print_frame(frame if frame["description"].any() else frame.drop(columns="description"))
    else:
        for i, (one, rows) in enumerate(frame.groupby("kind", sort=False)):
            print_frame(rows[["name", "summary"]], title=f"{chr(10) * bool(i)}{one}" if not kind else "")


def _list_classes(kind: str) -> None:
    """Make a command of the classes of a kind: `plumbline figures` is `plumbline classes figure`."""

    def listing(
        name: Annotated[
            str, typer.Argument(help="show the options of this one", autocompletion=complete(f"{kind} class"))
        ] = "",
        csv: CsvOption = False,
    ) -> None:
        classes(kind, name, csv)

    listing.__doc__ = f"List the registered {kind}s that entries name, or the options of one."
    app.command(f"{kind}s", rich_help_panel=USE)(listing)


for one in ("problem", "figure", "table", "metric", "statistic"):
    _list_classes(one)


@app.command(rich_help_panel=USE)
def schema(
    output: Annotated[
        Path | None,
        path_option("--output", "-o", help="folder of the schemas; default: the workspace's"),
    ] = None,
) -> None:
    """Write the JSON schemas of the YAML files, with which editors complete and check entries."""
    from plumbline.study.schemas import write_schemas

    for path in write_schemas(output or own(Path("config/schemas"))):
        print(path)
