"""How often few seeds look as a document claims, and how often they would if its methods were alike."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from plumbline.analysis.verdicts.measure import PartResult, samples
from plumbline.core.seeding import stream_seed
from plumbline.statistics.over_seeds import Sample, infer
from plumbline.study.claims import ClaimTest

DRAWS = 2_000
"""Of small samples, that are looked at for a pattern."""

Numbers = NDArray[np.float64]
Trials = tuple[str, str]
"""A task and a method."""


def pattern(measured: Sequence[PartResult], seeds: int, name: str) -> float:
    """Return how often all tests look as claimed with so many of the seeds, drawn without replacement.

    NaN where there are no more seeds than that.
    """
    shared = shared_seeds(measured)
    if not 0 < seeds < len(shared):
        return np.nan
    pools = [samples([table.loc[shared] for table in one.numbers]) for one in measured]

    def legends(rng: np.random.Generator) -> bool:
        drawn = rng.permutation(len(shared))[:seeds]
        few = ([Sample(m[drawn], None if b is None else b[drawn]) for m, b in pool] for pool in pools)
        return _look_as_claimed(measured, few, name)

    return _share(legends, f"{name}.pattern", seeds)


def chance(measured: Sequence[PartResult], seeds: int, name: str) -> float:
    """Return the same with the methods of each seed and task in random order: as if they were alike.

    Methods that no test compares, by others neither, keep apart. NaN where there are no more seeds than that, and where
    a test is of no two methods on one task.
    """
    shared = shared_seeds(measured)
    tests = [one.test for one in measured]
    if not 0 < seeds < len(shared) or any(test.baseline is None or test.also or test.baseline_task for test in tests):
        return np.nan
    sides: list[tuple[Trials, Trials]] = [((one.task, one.method), (one.task, str(one.baseline))) for one in tests]
    values: dict[Trials, Numbers] = {}
    for (own, other), one in zip(sides, measured, strict=True):
        (table,) = one.numbers
        values |= {
            own: table.loc[shared, "method"].to_numpy(float),
            other: table.loc[shared, "baseline"].to_numpy(float),
        }
    groups = connected(sides)

    def legends(rng: np.random.Generator) -> bool:
        drawn = rng.permutation(len(shared))[:seeds]
        mixed: dict[Trials, Numbers] = {}
        for group in groups:
            mixed |= zip(group, rng.permuted(np.stack([values[one][drawn] for one in group]), axis=0), strict=True)
        return _look_as_claimed(measured, ([Sample(mixed[own], mixed[other])] for own, other in sides), name)

    return _share(legends, f"{name}.chance", seeds)


def connected(pairs: Iterable[tuple[Trials, Trials]]) -> list[list[Trials]]:
    """Return what pairs join, directly or by others, in groups."""
    groups: list[list[Trials]] = []
    for pair in pairs:
        touched = [group for group in groups if set(group) & set(pair)]
        joined = list(dict.fromkeys([one for group in touched for one in group] + list(pair)))
        groups = [group for group in groups if group not in touched] + [joined]
    return groups


def shared_seeds(measured: Sequence[PartResult]) -> list[int]:
    """Return the seeds that all tests have."""
    return sorted(set.intersection(*(set(table.index) for one in measured for table in one.numbers)))


def looks_as_claimed(test: ClaimTest, value: float) -> bool:
    """Return whether a value is on the claimed side."""
    if test.range is not None:
        return test.range[0] < value < test.range[1]
    return value > test.threshold if test.direction == "greater" else value < test.threshold


def _look_as_claimed(measured: Sequence[PartResult], drawn: Iterable[list[Sample]], name: str) -> bool:
    return all(
        looks_as_claimed(one.test, infer(one.test.statistic, few, one.test.location, name, one.test.options).value)
        for one, few in zip(measured, drawn, strict=True)
    )


def _share(legends: Callable[[np.random.Generator], bool], name: str, seeds: int) -> float:
    rng = np.random.default_rng(stream_seed(name, seeds, "bootstrap"))
    return float(np.mean([legends(rng) for _ in range(DRAWS)]))
