"""Results of single tests of claims: values by seed, and the inference from them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from plumbline.analysis.evidence.runs import Runs
from plumbline.core.errors import PlumblineError
from plumbline.metrics.registry import find_metric
from plumbline.statistics.inference import Inference
from plumbline.statistics.over_seeds import SHARES, Sample, infer
from plumbline.study.claims import ClaimTest, Size, Stuck
from plumbline.study.resolved import TaskMethod


class PartResult(NamedTuple):
    """The result of a test.

    Attributes:
        test: that was made.
        numbers: one table per task, one row per seed: values of the `method`, and of the `baseline` where there is one.
        found: the inference from these values.
        budget: evaluations of a run, and how complete the runs' values are, in words.
        evaluations: of a run.
        rounds: of a run.
        full: rounds of the document's runs; 0 where the document does not run this task.
        floor: the same inference with the test's `floor` in place of its method; None without one.
    """

    test: ClaimTest
    numbers: tuple[pd.DataFrame, ...]
    found: Inference
    budget: str = ""
    evaluations: int = 0
    rounds: int = 1
    full: int = 1
    floor: Inference | None = None

    @property
    def seeds(self) -> int:
        """Number of seeds, of the task with the fewest."""
        return min(len(table) for table in self.numbers)


def samples(numbers: Sequence[pd.DataFrame]) -> list[Sample]:
    """Return the values as arrays, one sample a task."""
    return [
        Sample(
            table["method"].to_numpy(dtype=float),
            table["baseline"].to_numpy(dtype=float) if "baseline" in table else None,
        )
        for table in numbers
    ]


def numbers_of(test: ClaimTest, runs: Runs, name: str) -> tuple[pd.DataFrame, ...]:
    """Return the values of the seeds that all sides of a test have, one table per task.

    Raises:
        PlumblineError: no runs, or none that share a seed with a value of the metric.
    """
    tables = []
    for task in test.tasks:
        table = runs(task, test.method, test.metric_of(test.method))[[test.of]].set_axis(["method"], axis="columns")
        if test.baseline is not None:
            theirs = runs(test.baseline_task or task, test.baseline, test.metric)[test.of]
            table = table.join(theirs.rename("baseline"), how="inner")
        tables.append(table.dropna())
    for task, table in zip(test.tasks, tables, strict=True):
        if table.empty:
            against = f" and {test.baseline!r}" if test.baseline else ""
            raise PlumblineError(f"{name}: no seed of {test.method!r}{against} on {task!r} has {test.metric}")
    return tuple(tables)


def budget(test: ClaimTest, runs: Runs) -> tuple[str, int]:
    """Return the evaluations of a run in words, with the rounds that have a value where some have none; and alone."""
    tables = [runs(task, test.method, test.metric_of(test.method)) for task in test.tasks]
    gaps = ""
    for table in tables:
        if (known := table["rounds"].mean()) < (rounds := table["of"].max()):
            gaps = f", values in {known:.4g} of {rounds} rounds"
    counts = [int(table["evaluations"].max()) for table in tables]
    several = f"{min(counts)} to {max(counts)}" if len(set(counts)) > 1 else str(counts[0])
    return f"{several} evaluations{gaps}", counts[0]


def rounds_and_full(test: ClaimTest, runs: Runs, full: Mapping[TaskMethod, int]) -> tuple[int, int]:
    """Return the rounds of a test's runs and of the document's, of the side that is furthest from whole.

    Of a method whose runs are truncated only the baseline says how long they are.
    """
    whole = [trial for trial in test.trials if test.metric_of(trial[1]) == test.metric]
    pairs = [(int(runs(*trial, test.metric)["of"].max()), full.get(trial, 0)) for trial in whole]
    return min(pairs, key=lambda pair: pair[0] / pair[1] if pair[1] else 0.0, default=(1, 1))


def part_result(test: ClaimTest, runs: Runs, name: str, full: Mapping[TaskMethod, int] | None = None) -> PartResult:
    """Return the result of a test; `name` seeds its resamples and begins its error messages.

    Args:
        test: to be made.
        runs: it rests on.
        name: of claim, role and part.
        full: rounds of the document's runs; None where all runs count as whole.

    Raises:
        PlumblineError: as `numbers_of`.
    """
    numbers = numbers_of(test, runs, name)
    return PartResult(
        test,
        numbers,
        inferred(test, numbers, name),
        *budget(test, runs),
        *((1, 1) if full is None else rounds_and_full(test, runs, full)),
        floor_of(test, runs, name),
    )


def inferred(test: ClaimTest, numbers: Sequence[pd.DataFrame], name: str) -> Inference:
    """Return the inference on a test's statistic from its numbers; `name` seeds the resamples."""
    return infer(test.statistic, samples(numbers), test.location, name, test.options)


def floor_of(test: ClaimTest, runs: Runs, name: str) -> Inference | None:
    """Return the inference with the floor of a test in place of its method; None where it has not been run."""
    if test.floor is None or not set(runs.trials).issuperset((task, test.floor) for task in test.tasks):
        return None
    instead = test.model_copy(update={"method": test.floor})
    return inferred(instead, numbers_of(instead, runs, name), name)


def perfect(one: PartResult, name: str) -> Inference | None:
    """Return the inference with a method that has the best value there can be in every seed.

    None where that value is unknown, or is not what the claim is about.
    """
    metric = find_metric(one.test.metric)
    if metric.best is None or one.test.direction != ("less" if metric.better == "lower" else "greater"):
        return None
    if one.test.statistic not in ("difference", "ratio", "share-lower", "share-higher"):
        return None
    return inferred(one.test, [table.assign(method=metric.best) for table in one.numbers], name)


def p_of_size(one: PartResult, size: Size | None, name: str) -> float:
    """Return the probability of data so far from an effect, were it of this size or greater; 1 of no size."""
    if size is None or size.given is None:
        return 1.0
    found = one.found if size.ratio is None else infer("ratio", samples(one.numbers), one.test.location, name, {})
    return found.p_above(size.given) if one.test.direction == "less" else found.p_below(size.given)


def favourable(test: ClaimTest, found: Inference) -> float:
    """Return the share of seeds on the claimed side, ties by half; NaN where a seed alone is on none."""
    if test.range is not None:
        inside = (found.beyond(test.range[0]) > 0) & (found.beyond(test.range[1]) < 0)
        return float(inside.mean()) if inside.size else np.nan
    away = found.beyond(test.threshold) * (1 if test.direction == "greater" else -1)
    return float(np.mean((away > 0) + 0.5 * (away == 0))) if away.size else np.nan


def effect(test: ClaimTest, found: Inference) -> float:
    """Return the distance to the threshold in standard deviations of a seed; NaN for ranges, and counts of seeds."""
    away = found.beyond(test.threshold)
    if test.range is not None or test.statistic in SHARES or len(away) < 2 or not np.isfinite(away).all():
        return np.nan
    spread = away.std(ddof=1)
    return float(away.mean() / spread) if spread > 0 else np.nan


def stuck_runs(stuck: Stuck | None, test: ClaimTest, runs: Runs) -> list[tuple[str, int, int]]:
    """Return each of a test's methods, how many of its runs were stuck, and of how many; empty if no run can be."""
    if stuck is None:
        return []
    lasts = [(method, runs(task, method, stuck.metric)["last"]) for task, method in dict.fromkeys(test.trials)]
    return [(method, int((last > stuck.above).sum()), len(last)) for method, last in lasts]
