"""Comparisons of methods on a task, and the seeds that one takes."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from plumbline.api.sources import Place, Source, find_runs
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.words import names_of
from plumbline.study.claims import Of

if TYPE_CHECKING:
    import pandas as pd

    from plumbline.statistics.over_seeds import Location


def compare(
    methods: str | Iterable[str],
    task: str = "",
    *,
    metric: str = "",
    of: Of = "last",
    location: "Location" = "mean",
    experiment: str = "",
    folder: str | Path | None = None,
    store: str | Path | None = None,
) -> "pd.DataFrame":
    """Compare methods with the first of them, seed by seed.

    Runs are from the store of the repository where it has trials of all methods on the task, else from the results on
    file, with the atlas. Name an experiment for its results on file, a folder for the records of a preset or for an
    edition of the atlas, or a store for this one alone.

    Args:
        methods: two or more, in a list or separated by commas; the first is the baseline.
        task: that all have runs on; every one of the experiment where empty.
        metric: the only one, and then any (`pb.classes("metric")`) of a store or a folder; where empty those of an
            experiment's figure, table and claims; of a store hypervolume, regret or the best value; of the atlas what
            is measured on the task.
        of: the number of each run: `last`, `mean` or `median` of its rounds.
        location: `mean` or `median` of these numbers over seeds, and of their differences.
        experiment: its name (`pb.experiments()`), where several have these runs or `task` is empty.
        folder: results of a preset, for instance `results/quick`, or an edition of the atlas.
        store: a folder of trials.

    Returns:
        A row a metric, task and method: `better` (higher, lower, or empty where neither is), `baseline` (empty for the
        baseline itself), `seeds`, their mean or median `value` with its 95% interval `low` to `high`; the `pairs`,
        seeds that the baseline has too, the `difference` over these of method minus baseline with
        `difference_low` to `difference_high`, its two-sided `p`, and `p_corrected` by Holm's method for all
        differences of the table; and whether the method is `among_best`: the best one, or not significantly different
        from it, corrected alike. The attribute `attrs["source"]` says where the runs are from. Metrics that are one
        constant in all runs are left out.

    Raises:
        PlumblineError: an unknown name, no runs, or a method that has fewer than two seeds in common with the
            baseline.

    Examples:
        >>> found = pb.compare(["ucb", "cucb", "cucb-polished"], "levy-20", experiment="CBO-X1")
        >>> found[["metric", "method", "value", "difference", "p_corrected"]]
    """
    import pandas as pd

    from plumbline.analysis.comparisons.compare import Comparison, comparisons
    from plumbline.statistics.over_seeds import Location

    if location not in get_args(Location):
        raise unknown("location", location, get_args(Location))
    names, source = _runs(methods, task, metric, of, Place(experiment, _path(folder), _path(store)))
    found = comparisons(source.runs, names, task, metric, of, location)
    frame = pd.DataFrame(found, columns=Comparison._fields)
    _warn_of_unequal_budgets(source, names, set(frame["task"]))
    frame.attrs.update(source=source.words, location=location)
    return frame


def seeds(
    methods: str | Iterable[str],
    task: str,
    *,
    effect: str | float = "10%",
    metric: str = "",
    of: Of = "last",
    given: int = 5,
    experiment: str = "",
    folder: str | Path | None = None,
    store: str | Path | None = None,
) -> "pd.DataFrame":
    """Tell how many seeds the paired test of a mean difference takes, from the spread and the pairing on file.

    The power is simulated with the very test of `pb.compare`, for one comparison, without a correction. Runs are looked
    for as there.

    Args:
        methods: two or more, in a list or separated by commas; the first is the baseline.
        task: that all have runs on.
        effect: that is to be seen: a share of the baseline's mean, `"10%"`, or a difference in units of the metric.
        metric: the only one; as of `pb.compare` where empty.
        of: the number of each run: `last`, `mean` or `median` of its rounds.
        given: a number of seeds whose power is told too.
        experiment: its name, where several have these runs.
        folder: results of a preset, for instance `results/quick`, or an edition of the atlas.
        store: a folder of trials.

    Returns:
        A row a metric, method and power, .8 and .9: `pairs` of seeds on file, `baseline_mean`, the `effect` in units
        of the metric, in the direction that is better, the `deviation` of the differences over seeds and the
        `correlation` of both methods; `power`, the number of `seeds` for it with its 95% interval `low` to `high`
        (bootstrap over the seeds on file; infinite above 1,000); and the power `seen` with `given` seeds.

    Raises:
        PlumblineError: an unknown name, no runs, fewer than four common seeds, or no spread.

    Examples:
        >>> pb.seeds(["ucb", "cucb"], "levy-20", effect="10%", metric="best_f", experiment="CBO-X1")
    """
    import pandas as pd

    from plumbline.analysis.comparisons.planning import SeedPlan, parse_effect, seed_plans

    wanted = parse_effect(effect)
    if not task:
        raise PlumblineError("no task: name one")
    names, source = _runs(methods, task, metric, of, Place(experiment, _path(folder), _path(store)))
    frame = pd.DataFrame(seed_plans(source.runs, names, task, wanted, metric, of, given), columns=SeedPlan._fields)
    frame.attrs["source"] = source.words
    return frame


def _runs(methods: str | Iterable[str], task: str, metric: str, of: Of, place: Place) -> tuple[list[str], Source]:
    """Return the names of the methods, and their runs."""
    names = names_of(methods, "methods")
    if len(names) < 2:
        raise PlumblineError(f"methods: name two or more, the baseline first (got {', '.join(names) or 'none'})")
    if len(set(names)) < len(names):
        raise PlumblineError(f"methods: {next(one for one in names if names.count(one) > 1)!r} is there twice")
    if of not in get_args(Of):
        raise unknown("number of a run", of, get_args(Of))
    return names, find_runs(names, task, metric, place)


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def _warn_of_unequal_budgets(source: Source, methods: list[str], tasks: set[str]) -> None:
    """Warn where a method has fewer evaluations a run than another: what differs may be that."""
    runs = source.runs[source.runs["method"].isin(methods)]
    for task, rows in runs[runs["task"].isin(tasks)].groupby("task", observed=True):
        most = rows.groupby("method", observed=True)["evaluations"].max()
        if most.min() < most.max():
            each = ", ".join(f"{name} {int(most[name])}" for name in methods if name in most)
            warnings.warn(f"budgets on {task!r} differ, in evaluations: {each}", stacklevel=3)
