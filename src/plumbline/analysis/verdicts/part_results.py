"""Results of single tests of claims: values by seed, the inference from them, and descriptions in words."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from plumbline.analysis.evidence.runs import Runs
from plumbline.core.errors import PlumblineError
from plumbline.statistics.inference import Inference
from plumbline.statistics.over_seeds import SHARES, SIDE_BY_SIDE, Sample, infer
from plumbline.study.claims import ClaimTest, Stuck


class PartResult(NamedTuple):
    """The result of a test.

    Attributes:
        test: that was made.
        numbers: a table a task, a row a seed: values of the `method`, and of the `baseline` where the test has one.
        found: the inference from these values.
        budget: evaluations of a run, and how complete the runs' values are, in words.
    """

    test: ClaimTest
    numbers: tuple[pd.DataFrame, ...]
    found: Inference
    budget: str

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
    """Return the values of the seeds that all sides of a test have, a table a task.

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
    if test.statistic in SIDE_BY_SIDE:
        shared = sorted(set.intersection(*(set(table.index) for table in tables)))
        tables = [table.loc[shared] for table in tables]
    for task, table in zip(test.tasks, tables, strict=True):
        if table.empty:
            against = f" and {test.baseline!r}" if test.baseline else ""
            raise PlumblineError(f"{name}: no seed of {test.method!r}{against} on {task!r} has {test.metric}")
    return tuple(tables)


def budget(test: ClaimTest, runs: Runs) -> str:
    """Return the number of evaluations of a run in words, and that of rounds with a value where some have none."""
    tables = [runs(task, test.method, test.metric_of(test.method)) for task in test.tasks]
    gaps = ""
    for table in tables:
        if (known := table["rounds"].mean()) < (rounds := table["of"].max()):
            gaps = f", values in {known:.4g} of {rounds} rounds"
    return f"{tables[0]['evaluations'].max()} evaluations{gaps}"


def part_result(test: ClaimTest, runs: Runs, name: str) -> PartResult:
    """Return the result of a test; `name` seeds its resamples and begins its error messages.

    Raises:
        PlumblineError: as `numbers_of`.
    """
    numbers = numbers_of(test, runs, name)
    found = infer(test.statistic, samples(numbers), test.location, name, test.options)
    return PartResult(test, numbers, found, budget(test, runs))


def describe(test: ClaimTest) -> str:
    """Return a test in words."""
    against = f" - {test.baseline}" if test.baseline else ""
    against += f" (of {test.baseline_task})" if test.baseline_task else ""
    options = "".join(f", {key} {value}" for key, value in test.options.items())
    location = "median " if test.location == "median" else ""
    number = {"last": "final", "mean": "mean", "median": "median"}[test.of]
    shortened = f", after {test.after:.3g} of its rounds" if test.after else ""
    expected = f"{test.direction} than {test.threshold:g}"
    if test.range is not None:
        expected = f"within {test.range[0]:g} and {test.range[1]:g}"
    measured = f"{location}{test.statistic} of {number} {test.metric}, {test.method}{shortened}{against}"
    return f"{measured} on {', '.join(test.tasks)}{options}: {expected}"


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


def stuck_runs(stuck: Stuck | None, test: ClaimTest, runs: Runs) -> str:
    """Return the numbers of stuck runs of a test's methods, in words; empty where the claim does not define them."""
    if stuck is None:
        return ""
    counted = []
    for task, method in dict.fromkeys(test.trials):
        last = runs(task, method, stuck.metric)["last"]
        counted.append(f"{method} {int((last > stuck.above).sum())} of {len(last)}")
    return ", ".join(counted)
