"""Names are checked before anything runs: those of an experiment's outputs and claims, against its whole grid."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import get_args

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.options import parse
from plumbline.data.datasets import Dataset
from plumbline.data.models import ModelEntry
from plumbline.registry.catalogue import Kind, catalogue, once, option_model
from plumbline.registry.references import LONGEST_LABEL, Json, MethodChoice, canonical_json
from plumbline.store.keys import input_paths, methods_of
from plumbline.study.claims import Claim, ClaimTest
from plumbline.study.experiments import Block, Experiment, Output, Preset, Scale
from plumbline.study.methods_and_tasks import MethodsAndTasks
from plumbline.study.resolved import TaskMethod, pairs

Grid = Collection[TaskMethod]
"""The (task, method) of an experiment at any preset."""


def check_methods_and_tasks(library: MethodsAndTasks) -> None:
    """Raise PlumblineError where a method or a problem is unknown or has other options."""
    for method in library.methods.values():
        catalogue().check("method", method.ref.name, method.ref.options, method.source)
    for task in library.tasks.values():
        initial = task.budget.initial
        catalogue().check("problem", task.problem.name, task.problem.options, task.source)
        catalogue().check("design", initial.design, initial.options, task.source)


def check_inputs(library: MethodsAndTasks, models: Mapping[str, ModelEntry], datasets: Mapping[str, Dataset]) -> None:
    """Raise PlumblineError where options declare a dataset, a model or a download that there is not."""
    declared: list[tuple[str, Kind, str, Json]] = [
        *((one.source, "method", one.ref.name, one.ref.options) for one in library.methods.values()),
        *((one.source, "problem", one.problem.name, one.problem.options) for one in library.tasks.values()),
        *((f"config/models.yaml: {x}", "trainer", m.trainer, m.options) for x, m in models.items()),
    ]
    built = {
        "features": [name for name, one in datasets.items() if one.features],
        "models": list(models),
        "raw": [one.file for one in datasets.values() if one.file],
    }
    words = {"features": "dataset", "models": "model", "raw": "download"}
    for source, kind, name, options in declared:
        for choice in methods_of(name, options) if kind == "method" else [MethodChoice(name=name, options=options)]:
            for path in map(Path, input_paths(kind, choice.name, choice.options)):
                folder = str(path.parent)
                if folder not in built:
                    raise PlumblineError(f"{source}: no rule builds {path}: inputs are features/, models/ or raw/")
                called = path.name if folder == "raw" else path.stem
                if called not in built[folder]:
                    raise PlumblineError(f"{source}: {unknown(words[folder], called, built[folder])}")


def check_models(models: Mapping[str, ModelEntry], datasets: Collection[str]) -> None:
    """Raise PlumblineError where a trainer is unknown or has other options, or a name is a dataset's too."""
    for name, model in models.items():
        source = f"config/models.yaml: {name}"
        if name in datasets:
            raise PlumblineError(f"{source}: there is a dataset of that name: rename one")
        catalogue().check("trainer", model.trainer, model.options, source)


def check_names_of_files(names: Iterable[str], source: str) -> None:
    """Raise PlumblineError for the name of a dataset or a model that cannot name a file in the data folder."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name) or len(name) > LONGEST_LABEL:
            allowed = f"letters, digits and . _ + -, {LONGEST_LABEL} at most"
            raise PlumblineError(f"{source}: the name {name!r} names files: it is {allowed}")


def check_replaced(
    instead: Mapping[str, str], models: Collection[str], datasets: Mapping[str, Dataset], source: str
) -> None:
    """Raise PlumblineError where a dataset or a model is to be replaced by what there is not, or by the other kind."""
    for pair in instead.items():
        for name in pair:
            if name not in models and name not in datasets:
                raise PlumblineError(f"{source}: {unknown('dataset or model', name, {*models, *datasets})}")
        if (pair[0] in models) != (pair[1] in models):
            raise PlumblineError(f"{source}: of {pair[0]} and {pair[1]} one is a dataset and one is a model")


def check_experiment(experiment: Experiment, grid: Grid, library: MethodsAndTasks, source: str) -> None:
    """Raise PlumblineError where an output is unknown, has other options, or shows what the experiment lacks."""
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


def check_grids(experiment: Experiment, library: MethodsAndTasks, source: str) -> set[TaskMethod]:
    """Check an experiment's grids, and find the (task, method) of all of them.

    Raises:
        PlumblineError: a name that is in no YAML file, a (task, method) that a grid has twice, or snapshots of rounds
            that a trial does not have.
    """
    found: set[TaskMethod] = set()
    for name, blocks in experiment.grids().items():
        first: dict[TaskMethod, int] = {}
        for number, block in enumerate(blocks, 1):
            for pair in _pairs(library, block, source):
                if pair in first:
                    where = f"blocks {first[pair]} and {number}" if first[pair] != number else f"block {number} twice"
                    raise PlumblineError(f"{source}: {name}: {pair[1]!r} on {pair[0]!r} is in {where}: which counts?")
                first[pair] = number
        found |= first.keys()
    for preset in get_args(Preset):
        _check_snapshots(experiment, preset, library, source)
    return found


def _check_snapshots(experiment: Experiment, preset: Preset, library: MethodsAndTasks, source: str) -> None:
    scale: Scale | None = getattr(experiment, preset)
    if scale is None or not (scale.diagnostics or experiment.diagnostics).snapshots:
        return
    scaled = experiment.at(preset)
    assert scaled is not None
    for block in scaled.grid:
        for task in library.expand("task", block.tasks):
            rounds = library.tasks[task].budget.rounds if block.rounds is None else block.rounds
            try:
                scaled.diagnostics.check_rounds(rounds)
            except ValueError as error:
                raise PlumblineError(f"{source}: {preset}: {error} ({task})") from error


def _pairs(library: MethodsAndTasks, block: Block, source: str) -> list[TaskMethod]:
    try:
        return list(pairs(library, block))
    except PlumblineError as error:
        raise PlumblineError(f"{source}: {error}") from error


def check_output(kind: Kind, output: Output, grid: Grid, library: MethodsAndTasks, source: str) -> None:
    """Raise PlumblineError for an output that is unknown, has other options, or `names` what grid and records lack."""
    catalogue().check(kind, output.kind, output.options, source)
    tasks, methods = ({pair[i] for pair in grid} for i in (0, 1))
    tasks |= {library.tasks[task].entry for task in tasks}
    methods |= {library.methods[method].legend.entry for method in methods}

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


def check_claim(claim: Claim, grids: Mapping[str, Grid], source: str) -> None:
    """Raise PlumblineError where experiments share trials, or a test is of trials that none has, or of no metric.

    Fresh experiments need the trials of the primary test alone.

    Args:
        claim: what is checked.
        grids: by experiment of one set that the claim may rest on.
        source: what errors begin with.
    """
    for (one, first), (other, second) in combinations(grids.items(), 2):
        for task, method in sorted(set(first).intersection(second)):
            raise PlumblineError(f"{source}: {one} and {other} both run {method!r} on {task!r}: which of them counts?")
    grid = {pair for grid in grids.values() for pair in grid}
    decisive = [test for tests in claim.primary for test in tests.each()]
    for test in decisive if tuple(grids) == claim.fresh else claim.tests:
        _check_trials(test, grid, source)
    metrics = sorted({test.metric for test in claim.tests} | ({claim.stuck.metric} if claim.stuck else set()))
    statistics = sorted(
        {(test.statistic, canonical_json(test.options), bool(test.baseline), test.location) for test in claim.tests}
    )

    def verify() -> None:
        from plumbline.statistics.over_seeds import check_statistic

        check_metrics(metrics, source)
        for name, options, baseline, location in statistics:
            try:
                check_statistic(name, json.loads(options), baseline, location)
            except PlumblineError as error:
                raise PlumblineError(f"{source}: {error}") from error

    once(canonical_json(["claim", metrics, statistics]), verify)


def check_metrics(metrics: Iterable[str], source: str) -> None:
    """Raise PlumblineError for a metric that records have not and that cannot be derived from them."""
    from plumbline.metrics.registry import check_metric

    for metric in metrics:
        try:
            check_metric(metric)
        except PlumblineError as error:
            raise PlumblineError(f"{source}: {error}") from error


def _check_trials(test: ClaimTest, grid: Grid, source: str) -> None:
    floors = () if test.floor is None else tuple((task, test.floor) for task in test.tasks)
    for task, method in (*test.trials, *floors):
        _check_among("task", task, {task for task, _ in grid}, source)
        _check_among("method", method, {method for _, method in grid}, source)
        if (task, method) not in grid:
            methods = sorted(method for of, method in grid if of == task)
            raise PlumblineError(f"{source}: no preset runs {method!r} on {task!r}, but: {', '.join(methods)}")


def _check_among(kind: str, name: str, allowed: Collection[str], source: str) -> None:
    if name not in allowed:
        raise PlumblineError(f"{source}: {unknown(kind, name, allowed)}")
