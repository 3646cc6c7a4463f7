"""One trial by hand."""

import json
from math import isnan
from typing import Annotated, Any

import typer

from plumbline.cli.app import DATA, STORE, DataOption, DeviceOption, StoreOption, app, one_thread, watching
from plumbline.core.errors import PlumblineError


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
    from plumbline.core.device import device_called
    from plumbline.core.options import parse
    from plumbline.store.spec import TrialSpec
    from plumbline.trials.runner import run_trials

    one_thread()
    spec = parse(
        TrialSpec,
        {
            "problem": {"name": problem, "options": settings_of(problem_option)},
            "method": {"name": method, "options": settings_of(option)},
            "seed": seed,
            "budget": {"initial": {"design": design, "size": initial}, "rounds": rounds, "q": q},
        },
        "trial",
    )
    spec.check("trial")
    with watching() as watch:
        (folder,) = run_trials([spec], store, data, watch, device_called(device))
    _print_trial(folder.table(spec, points=True))
    print(f"records: {folder.records_path}")
    if folder.failed:
        reason = json.loads(folder.error_path.read_text(encoding="utf-8"))["error"]
        raise PlumblineError(f"{reason} (see {folder.error_path}; `plumbline failures --forget` clears it)")


def settings_of(pairs: list[str] | None) -> dict[str, Any]:
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


SHOWN = 40
"""Evaluations that `plumbline trial` prints: as many of the first as of the last."""


def _print_trial(table: Any) -> None:
    """Print the evaluations of a trial: of one outcome with the best and the regret so far, of several with each."""
    import pyarrow.compute as compute
    from rich.console import Console
    from rich.table import Table

    from plumbline.metrics.frames import entries, frame_of
    from plumbline.metrics.registry import metric

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
