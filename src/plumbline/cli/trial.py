"""One trial by hand."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from plumbline.cli.app import (
    NAME_VALUE,
    USE,
    CsvOption,
    DataOption,
    DeviceOption,
    StoreOption,
    app,
    places,
    printing_aside,
)
from plumbline.cli.completing import complete
from plumbline.core.errors import PlumblineError

if TYPE_CHECKING:
    import pandas as pd


@app.command(rich_help_panel=USE)
def trial(
    method: Annotated[
        str,
        typer.Option(help="an entry of config/methods (`plumbline methods`)", autocompletion=complete("method")),
    ] = "",
    task: Annotated[
        str, typer.Option(help="an entry of config/tasks (`plumbline tasks`)", autocompletion=complete("task"))
    ] = "",
    method_class: Annotated[
        str,
        typer.Option(
            "--class",
            help="instead of --method: a registered class (`plumbline classes method`)",
            autocompletion=complete("method class"),
        ),
    ] = "",
    problem: Annotated[
        str,
        typer.Option(
            help="instead of --task: a registered problem (`plumbline classes problem`): ackley-2",
            autocompletion=complete("problem class"),
        ),
    ] = "",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-p", help="an option of the method: model.kernel=rbf", metavar=NAME_VALUE),
    ] = None,
    problem_option: Annotated[
        list[str] | None,
        typer.Option("--problem-option", "-P", help="an option of the problem: noise_std=0.1", metavar=NAME_VALUE),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="the seed of all random draws")] = 0,
    rounds: Annotated[
        int | None, typer.Option(min=0, max=100_000, help="rounds after the initial design; default: 10, or the task's")
    ] = None,
    q: Annotated[
        int | None, typer.Option(min=1, max=1_000, help="evaluations per round; default: 1, or the task's")
    ] = None,
    initial: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="points of the initial design; default: 5, or the task's")
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(
            help="the initial design (`plumbline classes design`); default: uniform, or the task's",
            autocompletion=complete("design class"),
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.1, help="seconds that one call of the method or problem may take; default: no limit"),
    ] = None,
    real_data: Annotated[
        bool,
        typer.Option(
            "--real-data", help="use real data instead of generated stand-ins, except where -p or -P names the data"
        ),
    ] = False,
    store: StoreOption = None,
    data: DataOption = None,
    device: DeviceOption = "cpu",
    csv: CsvOption = False,
) -> None:
    """Run one trial and print its evaluations."""
    from plumbline.api.repository import find_repository
    from plumbline.api.running import (
        TrialRequest,
        entries_and_stand_ins,
        evaluations,
        reason_of_failure,
        run_specs,
    )
    from plumbline.cli.tables import print_frame

    options, problem_options = settings_of(option), settings_of(problem_option)
    request = TrialRequest(method, task, method_class, problem, options, problem_options, rounds, q, initial, design)
    at = places(store, data=data)
    with printing_aside(csv):
        spec = request.spec(*entries_and_stand_ins(find_repository(), real_data), seed)
        (folder,) = run_specs([spec], at.store, at.data, device, timeout=timeout)
    frame = evaluations(folder.table(spec, points=True))
    if csv:
        print_frame(frame, csv=True)
    else:
        if len(frame):
            print_evaluations(frame)
        print(f"records: {folder.records_path}")
    if folder.failed:
        raise PlumblineError(reason_of_failure(folder))


def settings_of(pairs: list[str] | None) -> dict[str, Any]:
    """Nested options of `a.b=value` pairs; values are YAML.

    Raises:
        PlumblineError: a pair without a name or a value, a value that is not YAML as `core.options` reads it, or a name
            that has a value already.
    """
    from plumbline.core.strict_yaml import parse_yaml

    options: dict[str, Any] = {}
    for pair in pairs or []:
        path, equals, value = pair.partition("=")
        *parents, leaf = path.split(".")
        if not equals or not all((*parents, leaf)):
            raise PlumblineError(f"option {pair!r}: write it as name=value")
        inner = options
        for parent in parents:
            inner = inner.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise PlumblineError(f"option {pair!r}: {parent!r} has a value of its own already")
        if leaf in inner:
            raise PlumblineError(f"option {pair!r}: {path!r} has a value already")
        inner[leaf] = parse_yaml(value, f"option {pair!r}")
    return options


SHOWN = 40
"""Number of evaluations that `plumbline trial` prints, half of them the first, half the last."""

INPUTS = 6
"""Number of inputs of a point that it prints."""


def print_evaluations(frame: "pd.DataFrame") -> None:
    """Print the evaluations of a trial: the inputs in a cell, and each outcome and running metric in a column."""
    from plumbline.cli.tables import print_table, written

    inputs = [name for name in map(str, frame) if name[0] == "x" and name[1:].isdigit()]
    numbers = [name for name in map(str, frame.columns[5:]) if name not in inputs]
    headers = {"pit": "cdf of y"}
    names = [headers.get(name, name.replace("_", " ")) for name in numbers]

    def row(one: "pd.Series") -> list[str]:
        point = " ".join(f"{one[name]:.4g}" for name in inputs[:INPUTS]) + " ..." * (len(inputs) > INPUTS)
        return [str(one["iteration"]), point, *(written(float(one[name])) for name in numbers)]

    rows = [row(one) for _, one in frame.iterrows()]
    if len(rows) > SHOWN:
        between = ["...", f"{len(rows) - SHOWN} more", *[""] * len(numbers)]
        rows = [*rows[: SHOWN // 2], between, *rows[-(SHOWN // 2) :]]
    print_table(["round", "x", *names], rows, ["round", *names])
