"""Comparisons of methods on a task, and the number of seeds that a comparison needs."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from plumbline.api.arguments import checked
from plumbline.api.sources import Place, Source, find_runs
from plumbline.core.errors import PlumblineError, shown, unknown
from plumbline.core.words import names_of
from plumbline.study.claims import Of

if TYPE_CHECKING:
    import pandas as pd

    from plumbline.statistics.over_seeds import Location


@checked
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

    Runs are taken from the store of the workspace if it has trials of all methods on the task, else from the reference
    results, including the atlas. Name an experiment to use its reference results, a folder to use the records of a
    preset or an edition of the atlas, or a store to use only that store.

    Args:
        methods: two or more, as a list or separated by commas; the first is the baseline.
        task: a task on which all methods have runs; if empty, all tasks of the experiment.
        metric: the metric; in a store or a folder any of `pb.classes("metric")`. If empty, the metrics of an
            experiment's figure, table and claims; in a store hypervolume, regret or the best value; in the atlas the
            metric of the task.
        of: how the rounds of a run become one number: `last`, `mean` or `median`.
        location: `mean` or `median` of these numbers over seeds, and of their differences.
        experiment: its name (`pb.experiments()`), if several have these runs or `task` is empty.
        folder: results of a preset, for instance `results/quick`, or an edition of the atlas.
        store: a folder of trials.

    Returns:
        A row for each metric, task and method: `better` (higher, lower, or empty if neither), `baseline` (empty for the
        baseline itself), `seeds`, their mean or median `value` with its 95% interval `low` to `high`; `pairs`, the
        number of seeds that the baseline has too; over these pairs the `difference`, method minus baseline, with
        `difference_low` to `difference_high`, its two-sided `p`, and `p_corrected` by Holm's method for all differences
        in the table; and whether the method is `among_best`, that is, the best or not significantly different from the
        best after the same correction. The attribute `attrs["source"]` says where the runs are from. Metrics that have
        the same value in all runs are left out.

    Raises:
        PlumblineError: an unknown name, no runs, or a method with fewer than two seeds in common with the baseline.

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


@checked
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
    """Return the number of seeds that the paired test of a mean difference needs, from the spread of reference runs.

    The power is simulated with the same test as in `pb.compare`, for one comparison without a correction. Runs are
    looked up as in `pb.compare`.

    Args:
        methods: two or more, as a list or separated by commas; the first is the baseline.
        task: a task on which all methods have runs.
        effect: the effect to be detected: a share of the baseline's mean, `"10%"`, or a difference in units of the
            metric.
        metric: the metric; if empty, as in `pb.compare`.
        of: how the rounds of a run become one number: `last`, `mean` or `median`.
        given: a number of seeds whose power is returned too.
        experiment: its name, if several have these runs.
        folder: results of a preset, for instance `results/quick`, or an edition of the atlas.
        store: a folder of trials.

    Returns:
        A row for each metric, method and power (.8 and .9): the number of `pairs` of seeds; `baseline_mean`; the
        `effect` in units of the metric, in the better direction; the standard `deviation` of the differences over
        seeds; the `correlation` of the two methods; the `power`; the number of `seeds` for it with its 95% interval
        `low` to `high` (bootstrap over the pairs; infinite above 1,000); and the power `seen` with `given`
        seeds.

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
        raise PlumblineError(
            f"methods: name two or more, the baseline first (got {shown(names[0]) if names else 'none'})"
        )
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
