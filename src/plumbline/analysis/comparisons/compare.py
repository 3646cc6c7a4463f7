"""Methods beside a baseline, seed by seed, on each task that they share."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.analysis.evidence.runs import Runs
from plumbline.core.errors import LISTED, PlumblineError, unknown
from plumbline.metrics.registry import Better, find_metric
from plumbline.statistics.inference import Inference
from plumbline.statistics.multiple_tests import holm
from plumbline.statistics.over_seeds import Location, Sample, difference, value
from plumbline.study.claims import Of, split_metric

Array = NDArray[np.float64]

LEVEL = 0.05
"""Of the two-sided tests: differences with a corrected p-value above it are not significant."""


class Comparison(NamedTuple):
    """A method on a task by a metric, beside the baseline, which is the first method of the comparison.

    Numbers of the difference are NaN for the baseline itself, and where fewer than two seeds are paired.

    Attributes:
        better: which direction of the metric is better, empty where neither is.
        baseline: the method that it is compared with, empty for the baseline.
        seeds: that have a value of the method.
        value, low, high: mean or median over these, and its 95% interval (`docs/results/verdict-rule.md`).
        pairs: seeds that have a value of both.
        difference, difference_low, difference_high: mean or median of method minus baseline over the pairs, with its
            95% interval.
        p: of no difference, two-sided: twice the smaller one of the claims' two tests.
        p_corrected: after Holm's correction for all differences of the table.
        among_best: whether the method is the best one here, or not significantly different from it: by the same test
            against the best one, after Holm's correction for all these tests of the table.
    """

    metric: str
    task: str
    better: Better
    method: str
    baseline: str
    seeds: int
    value: float
    low: float
    high: float
    pairs: int
    difference: float
    difference_low: float
    difference_high: float
    p: float
    p_corrected: float
    among_best: bool


def comparisons(
    table: pd.DataFrame,
    methods: Sequence[str],
    task: str = "",
    metric: str = "",
    of: Of = "last",
    location: Location = "mean",
) -> list[Comparison]:
    """Return the comparisons of methods with the first of them, by each metric, or by one, on each task or on one.

    A metric that is one number in all runs of the methods is left out unless it is named: a level that was set, for
    instance. So is one that fewer than two of the methods have.

    Args:
        table: of runs (`plumbline.analysis.evidence.runs.COLUMNS`).
        methods: the baseline, and one or more others.
        task: the only one; all that have runs of all methods where none is named.
        metric: the only one; all where none is named.
        of: the number of each run.
        location: of these numbers over seeds, and of their differences.

    Raises:
        PlumblineError: a name without runs, no task that all methods have runs on, no values, or a method of which
            fewer than two seeds are the baseline's too.
    """
    blocks = blocks_of(table, methods, task, metric, of)
    _refuse_single_seeds(blocks, methods)
    return compared(blocks, location)


def compared(blocks: "Sequence[Block]", location: Location) -> list[Comparison]:
    """Return the comparisons of all blocks, whose p-values are corrected together."""
    rows = [row for block in blocks for row in block.rows(location)]
    tested = [i for i, row in enumerate(rows) if not np.isnan(row.p)]
    for i, p in zip(tested, holm([rows[i].p for i in tested]), strict=True):
        rows[i] = rows[i]._replace(p_corrected=p)
    best = {(*block.place, name) for block in blocks if (name := block.best(location))}
    against = [(block.place, *one) for block in blocks for one in block.against_best(location)]
    corrected = holm([p for _, _, p in against])
    best |= {(*place, method) for (place, method, _), p in zip(against, corrected, strict=True) if p > LEVEL}
    return [row._replace(among_best=(row.metric, row.task, row.method) in best) for row in rows]


def blocks_of(
    table: pd.DataFrame, methods: Sequence[str], task: str = "", metric: str = "", of: Of = "last"
) -> "list[Block]":
    """Return what there is of each metric, or of one, on each task, or on one, that all methods share.

    Raises:
        PlumblineError: a name without runs, no task that all methods have runs on, or no metric of which two have
            values.
    """
    runs = Runs(_of_methods(table, methods, task, metric, of))
    places = sorted(dict.fromkeys((name, one) for one, _, name in runs.tables), key=lambda place: place[0])
    found = [block for place in places if (block := _block(runs, *place, methods, of))]
    if not found:
        what = f"{metric} has no values" if metric else "no metric has values"
        where = f" on {task!r}" if task else ""
        raise PlumblineError(f"{', '.join(methods)}: {what} of two of them{where}{_meaning(metric)}")
    return found


def _meaning(metric: str) -> str:
    """Return what a metric is, in brackets: of regret without a known optimum it says why there is none."""
    return f" ({split_metric(metric)[0]}: {find_metric(split_metric(metric)[0]).summary})" if metric else ""


def _of_methods(table: pd.DataFrame, methods: Sequence[str], task: str, metric: str, of: Of) -> pd.DataFrame:
    """Return the runs of these methods on the tasks that all of them share, without metrics that cannot differ."""
    for kind, name in (("task", task), ("metric", metric)):
        known = sorted(map(str, table[kind].unique()))
        if name and name not in known:
            raise unknown(kind, name, known)
    here = table[table["metric"] == metric] if metric else table
    known = sorted(map(str, here["method"].unique()))
    for name in [name for name in methods if name not in known]:
        if metric:  # a method with runs, but without forecasts, has no metric of these
            raise PlumblineError(f"no runs of {name!r} have the metric {metric!r}; those of {_some(known)} do")
        raise unknown("method", name, known)
    here = here[here["method"].isin(methods)]
    there = here.groupby("task", observed=True)["method"].nunique()
    shared = [str(one) for one in there[there == len(methods)].index if not task or one == task]
    if not shared:
        where = f" on {task!r}" if task else ""
        raise PlumblineError(f"{', '.join(methods)}: no task has runs of all of them{where}")
    here = here[here["task"].isin(shared)]
    if not metric:
        values = here.groupby("metric", observed=True)[of]
        varied = values.max() > values.min()
        here = here[here["metric"].map(varied).astype(bool)] if varied.any() else here
    return here


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= LISTED else f"{len(names)} methods, {names[0]} among them,"


class Block(NamedTuple):
    """What there is of one metric on one task: the values of each method by seed, the baseline's first."""

    metric: str
    task: str
    better: Better
    series: dict[str, pd.Series]

    def values(self, method: str) -> Array:
        """Return the values of a method that its mean or median is of: `n`."""
        return self.series[method].to_numpy(dtype=float)

    @property
    def place(self) -> tuple[str, str]:
        """Metric and task."""
        return self.metric, self.task

    def paired(self, method: str, baseline: str) -> tuple[Array, Array]:
        """Return the values of two methods for the seeds that both have: `n` each."""
        both = pd.concat([self.series[method], self.series[baseline]], axis=1, join="inner").sort_index()
        ours, theirs = both.to_numpy(dtype=float).T
        return ours, theirs

    def apart(self, method: str, baseline: str, location: Location) -> tuple[Inference | None, int]:
        """Return the difference of two methods, None with fewer than two pairs, and the number of pairs."""
        ours, theirs = self.paired(method, baseline)
        if len(ours) < 2:
            return None, len(ours)
        name = f"{self.task} {self.metric} {method} {baseline}"
        return difference([Sample(ours, theirs)], location, name), len(ours)

    def rows(self, location: Location) -> Iterator[Comparison]:
        """Yield a comparison a method."""
        baseline = next(iter(self.series))
        for method in self.series:
            values = self.values(method)
            level, low, high = np.nan, np.nan, np.nan
            if len(values):
                found = value([Sample(values, None)], location, f"{self.task} {self.metric} {method}")
                level, (low, high) = found.value, found.interval()
            apart, pairs = (None, len(values)) if method == baseline else self.apart(method, baseline, location)
            ends = apart.interval() if apart else (np.nan, np.nan)
            yield Comparison(
                metric=self.metric,
                task=self.task,
                better=self.better,
                method=method,
                baseline="" if method == baseline else baseline,
                seeds=len(values),
                value=level,
                low=low,
                high=high,
                pairs=pairs,
                difference=apart.value if apart else np.nan,
                difference_low=ends[0],
                difference_high=ends[1],
                p=apart.p_two_sided() if apart else np.nan,
                p_corrected=np.nan,
                among_best=False,
            )

    def best(self, location: Location) -> str:
        """Return the best method; empty without a direction, and where it has one seed: it cannot be tested then."""
        sign = {"higher": 1, "lower": -1, "": 0}[self.better]
        levels = {
            name: sign * float(np.mean(values) if location == "mean" else np.median(values))
            for name in self.series
            if len(values := self.values(name))
        }
        best = max(levels, key=lambda name: levels[name]) if sign and levels else ""
        return best if best and len(self.values(best)) > 1 else ""

    def against_best(self, location: Location) -> Iterator[tuple[str, float]]:
        """Yield the p-value of each other method beside the best one; nothing where there is none."""
        best = self.best(location)
        for method in self.series:
            if best and method != best:
                apart, _ = self.apart(method, best, location)
                if apart is not None:
                    yield method, apart.p_two_sided()


def _block(runs: Runs, metric: str, task: str, methods: Sequence[str], of: Of) -> Block | None:
    """Return what there is of a metric on a task; None where fewer than two methods have values of it."""
    tables = {method: runs.tables.get((task, method, metric)) for method in methods}
    values = {
        method: pd.Series(dtype=float) if rows is None else rows[of].dropna().astype(float)
        for method, rows in tables.items()
    }
    if sum(len(one) > 0 for one in values.values()) < 2:
        return None
    return Block(metric, task, find_metric(split_metric(metric)[0]).better, values)


def _refuse_single_seeds(blocks: Sequence[Block], methods: Sequence[str]) -> None:
    """Raise PlumblineError for a method that has no values, or is nowhere paired with the baseline by two seeds."""
    baseline, *others = methods
    for method in methods:
        if not any(len(one.series[method]) for one in blocks):
            names = list(dict.fromkeys(one.metric for one in blocks))
            metric = names[0] if len(names) == 1 else ""
            raise PlumblineError(f"{method!r} has no values of {metric or 'any metric'}{_meaning(metric)}")
    for method in others:
        most = max((len(one.paired(method, baseline)[0]) for one in blocks), default=0)
        if most < 2:
            seeds = "no seed" if most == 0 else "one seed"
            raise PlumblineError(f"{method!r} and {baseline!r} have {seeds} in common: a comparison takes two or more")
