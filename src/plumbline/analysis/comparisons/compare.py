"""Two methods of an experiment, seed by seed, on each task that they share."""

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from plumbline.analysis.evidence.runs import Runs
from plumbline.core.errors import PlumblineError, unknown
from plumbline.metrics.registry import Better, find_metric
from plumbline.statistics.over_seeds import Sample, difference, wins
from plumbline.study.claims import Of, split_metric


class Comparison(NamedTuple):
    """A paired comparison of a method with a baseline on one task, by one metric.

    Attributes:
        better: which direction of the metric is better, empty where neither is.
        seeds: that have a value of both.
        method, baseline: their means.
        difference, low, high: mean of method minus baseline, and its 95% interval (`docs/results/verdict-rule.md`).
        p: of no difference, two-sided: twice the smaller one of the claims' two tests.
        median: of the differences.
        higher: the share of seeds where the method's is the higher value, ties by half.
    """

    metric: str
    task: str
    better: Better
    seeds: int
    method: float
    baseline: float
    difference: float
    low: float
    high: float
    p: float
    median: float
    higher: float


def comparisons(table: pd.DataFrame, method: str, baseline: str, metric: str = "", of: Of = "last") -> list[Comparison]:
    """Return the comparisons of two methods by each metric, or by one, on each task that both have runs on.

    A metric that is one number in all runs of both is left out unless it is named: a level that was set, for instance.

    Args:
        table: of runs (`plumbline.analysis.evidence.runs.COLUMNS`).
        method: that is looked at.
        baseline: what it is compared with.
        metric: the only one; all where none is named.
        of: the number of each run.

    Raises:
        PlumblineError: a method or a metric without runs, or no task that both have runs on.
    """
    for kind, name in (("method", method), ("method", baseline), ("metric", metric)):
        known = sorted(table[kind].unique())
        if name and name not in known:
            raise unknown(kind, name, known)
    if not metric:
        here = table[table["method"].isin([method, baseline])]
        values = here.groupby("metric", observed=True)[of]
        varied = values.max() > values.min()
        table = here[here["metric"].map(varied).astype(bool)] if varied.any() else here
    found = sorted(_comparisons(Runs(table), method, baseline, metric, of), key=lambda one: one.metric)
    if not found:
        raise PlumblineError(f"{method!r} and {baseline!r} share no task and metric on which both have values")
    return found


def _comparisons(runs: Runs, method: str, baseline: str, metric: str, of: Of) -> Iterator[Comparison]:
    for task, one, name in runs.tables:
        if one != method or (metric and name != metric) or (task, baseline, name) not in runs.tables:
            continue
        both = pd.concat([runs(task, label, name)[of] for label in (method, baseline)], axis=1).dropna()
        if both.empty:
            continue
        ours, theirs = both.to_numpy(dtype=float).T
        apart = difference([Sample(ours, theirs)], "mean", f"{task} {name} {method} {baseline}")
        means = float(ours.mean()), float(theirs.mean())
        p = min(1.0, 2 * min(apart.p_above(0.0), apart.p_below(0.0)))
        better = find_metric(split_metric(name)[0]).better
        higher = float(wins(ours, theirs).mean())
        interval = apart.interval()
        yield Comparison(name, task, better, len(both), *means, apart.value, *interval, p, apart.median, higher)
