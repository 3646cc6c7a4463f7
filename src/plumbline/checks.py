"""Names are checked before anything runs: those of an experiment's outputs and claims, against its whole grid."""

from collections.abc import Collection, Iterable

from plumbline.catalogue import Kind, catalogue, once, option_model
from plumbline.errors import PlumblineError, unknown
from plumbline.library import Library
from plumbline.options import parse
from plumbline.specs import canonical_json
from plumbline.study import Claim, ClaimTest, Experiment, Output

Grid = Collection[tuple[str, str]]
"""The (task, method) of an experiment at any preset."""


def check_library(library: Library) -> None:
    """Raise PlumblineError where a method or a problem is unknown or has other options."""
    for label, method in library.methods.items():
        catalogue().check("method", method.ref.name, method.ref.options, f"config/methods.yaml: {label}")
    for name, task in library.tasks.items():
        catalogue().check("problem", task.problem.name, task.problem.options, f"config/tasks.yaml: {name}")


def check_experiment(experiment: Experiment, grid: Grid, library: Library, source: str) -> None:
    """Raise PlumblineError where an output is unknown, has other options, or speaks of what is not in the grid."""
    outputs: dict[Kind, Output | None] = {
        "illustration": experiment.illustration,
        "figure": experiment.figure,
        "table": experiment.table,
    }
    for kind, output in outputs.items():
        if output is not None:
            check_output(kind, output, grid, library, source)
    if experiment.figure is not None and not grid and experiment.illustration is None:
        raise PlumblineError(f"{source}: a figure needs a `grid` of trials or an `illustration`")


def check_output(kind: Kind, output: Output, grid: Grid, library: Library, source: str) -> None:
    """Check the options of a figure, table or illustration, and the names in them (their method `names`)."""
    catalogue().check(kind, output.kind, output.options, source)
    tasks, methods = ({pair[i] for pair in grid} for i in (0, 1))
    tasks |= {library.tasks[task].entry for task in tasks}
    methods |= {library.methods[method].look.entry for method in methods}

    def verify() -> None:
        options = parse(option_model(kind, output.kind), output.options, source)
        names = getattr(options, "names", None)
        if not callable(names):
            return
        named = names()
        where = f"{source}: {kind} {output.kind!r}"
        for name in named.tasks:
            _check_among("task", name, tasks, where)
        for name in named.methods:
            _check_among("method", name, methods, where)
        check_metrics(named.metrics, where)

    once(canonical_json([kind, output.kind, output.options, sorted(tasks), sorted(methods)]), verify)


def check_claim(claim: Claim, grid: Grid, source: str) -> None:
    """Raise PlumblineError where a test speaks of trials that no preset has, or of what cannot be measured."""
    for test in claim.tests:
        _check_trials(test, grid, source)
    metrics = sorted({test.metric for test in claim.tests})
    statistics = sorted({test.statistic for test in claim.tests})

    def verify() -> None:
        from plumbline.analysis.statistics import find_statistic

        check_metrics(metrics, source)
        for statistic in statistics:
            try:
                find_statistic(statistic)
            except PlumblineError as error:
                raise PlumblineError(f"{source}: {error}") from error

    once(canonical_json(["claim", metrics, statistics]), verify)


def check_metrics(metrics: Iterable[str], source: str) -> None:
    """Raise PlumblineError for a metric that records have not and that cannot be derived from them."""
    from plumbline.analysis.metrics import check_metric

    for metric in metrics:
        try:
            check_metric(metric)
        except PlumblineError as error:
            raise PlumblineError(f"{source}: {error}") from error


def _check_trials(test: ClaimTest, grid: Grid, source: str) -> None:
    for task, method in test.trials:
        _check_among("task", task, {task for task, _ in grid}, source)
        _check_among("method", method, {method for _, method in grid}, source)
        if (task, method) not in grid:
            methods = sorted(method for of, method in grid if of == task)
            raise PlumblineError(f"{source}: no preset runs {method!r} on {task!r}, but: {', '.join(methods)}")


def _check_among(kind: str, name: str, allowed: Collection[str], source: str) -> None:
    if name not in allowed:
        raise PlumblineError(f"{source}: {unknown(kind, name, allowed)}")
