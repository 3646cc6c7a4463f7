"""Small-sample rates: how often few seeds support a claim, and how often they would if its methods were equal."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from plumbline.analysis.verdicts.part_results import PartResult, samples
from plumbline.core.seeding import stream_seed
from plumbline.statistics.over_seeds import Sample, infer
from plumbline.study.claims import ClaimTest

DRAWS = 2_000
"""Small samples drawn for a rate."""

Numbers = NDArray[np.float64]
Trials = tuple[str, str]
"""A task and a method."""


def claimed_rate(results: Sequence[PartResult], seeds: int, name: str) -> float:
    """Return the share of samples of so many `seeds` in which the estimates of all tests are on the claimed side.

    Samples are drawn without replacement. NaN where there are no more seeds than that.
    """
    shared = shared_seeds(results)
    if not 0 < seeds < len(shared):
        return np.nan
    pools = [samples([table.loc[shared] for table in one.numbers]) for one in results]

    def draw(rng: np.random.Generator) -> bool:
        drawn = rng.permutation(len(shared))[:seeds]
        few = ([Sample(m[drawn], None if b is None else b[drawn]) for m, b in pool] for pool in pools)
        return _all_on_claimed_side(results, few, name)

    return _share(draw, f"{name}.pattern", seeds)


def chance_rate(results: Sequence[PartResult], seeds: int, name: str) -> float:
    """Return the same share with the methods of each seed and task in random order: under the null hypothesis.

    We permute only within groups of methods that tests connect. NaN where there are no more seeds than that, and where
    a test does not compare two methods on one task.
    """
    shared = shared_seeds(results)
    tests = [one.test for one in results]
    if not 0 < seeds < len(shared) or any(test.baseline is None or test.also or test.baseline_task for test in tests):
        return np.nan
    sides: list[tuple[Trials, Trials]] = [((one.task, one.method), (one.task, str(one.baseline))) for one in tests]
    values: dict[Trials, Numbers] = {}
    for (own, other), one in zip(sides, results, strict=True):
        (table,) = one.numbers
        values |= {
            own: table.loc[shared, "method"].to_numpy(float),
            other: table.loc[shared, "baseline"].to_numpy(float),
        }
    groups = connected_components(sides)

    def draw(rng: np.random.Generator) -> bool:
        drawn = rng.permutation(len(shared))[:seeds]
        mixed: dict[Trials, Numbers] = {}
        for group in groups:
            mixed |= zip(group, rng.permuted(np.stack([values[one][drawn] for one in group]), axis=0), strict=True)
        return _all_on_claimed_side(results, ([Sample(mixed[own], mixed[other])] for own, other in sides), name)

    return _share(draw, f"{name}.chance", seeds)


def connected_components(pairs: Iterable[tuple[Trials, Trials]]) -> list[list[Trials]]:
    """Return the connected components of the graph with these edges."""
    groups: list[list[Trials]] = []
    for pair in pairs:
        touched = [group for group in groups if set(group) & set(pair)]
        joined = list(dict.fromkeys([one for group in touched for one in group] + list(pair)))
        groups = [group for group in groups if group not in touched] + [joined]
    return groups


def shared_seeds(results: Sequence[PartResult]) -> list[int]:
    """Return the seeds that all tests have."""
    return sorted(set.intersection(*(set(table.index) for one in results for table in one.numbers)))


def on_claimed_side(test: ClaimTest, value: float) -> bool:
    """Tell whether `value` is on the claimed side of the threshold, or inside the claimed range."""
    if test.range is not None:
        return test.range[0] < value < test.range[1]
    return value > test.threshold if test.direction == "greater" else value < test.threshold


def _all_on_claimed_side(results: Sequence[PartResult], drawn: Iterable[list[Sample]], name: str) -> bool:
    return all(
        on_claimed_side(one.test, infer(one.test.statistic, few, one.test.location, name, one.test.options).value)
        for one, few in zip(results, drawn, strict=True)
    )


def _share(draw: Callable[[np.random.Generator], bool], name: str, seeds: int) -> float:
    rng = np.random.default_rng(stream_seed(name, seeds, "bootstrap"))
    return float(np.mean([draw(rng) for _ in range(DRAWS)]))
