"""Seed roulette: the numbers of single seeds from which the report's script draws samples as small as a paper's."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.analysis.publish.claim_pages import Titles, compared, measured
from plumbline.analysis.publish.supported_values import supports
from plumbline.analysis.verdicts.criterion import criterion
from plumbline.analysis.verdicts.judge import ReadyClaim, ready_claims, runs_from_reference
from plumbline.analysis.verdicts.part_results import numbers_of, samples
from plumbline.analysis.verdicts.verdict import FEW_SEEDS
from plumbline.statistics.over_seeds import minus, over, wins
from plumbline.study.claims import ClaimTest
from plumbline.study.experiments import Study

Numbers = NDArray[np.float64]

DIGITS = 6
"""Significant digits of a number on the page."""


def _distance(method: Numbers, baseline: Numbers, level: float = 0.0) -> Numbers:
    return minus(np.abs(method - level), np.abs(baseline - level))


OF_A_SEED: dict[str, Callable[..., Numbers]] = {
    "difference": minus,
    "value": lambda method, baseline: method,
    "distance-difference": _distance,
    "share-above": lambda method, baseline, level=0.0: (method > level).astype(float),
    "share-lower": lambda method, baseline: 1 - wins(method, baseline),
    "share-higher": wins,
    "ratio": over,
}
"""Statistics that are the mean or the median of one number a seed; of ratios of means the page has both numbers."""


def wheels(studies: Iterable[Study], reference: Path, titles: Titles) -> list[dict[str, Any]]:
    """Return the judged claims of documents with few seeds, each with the numbers of our seeds.

    Args:
        studies: with the claims.
        reference: reference results.
        titles: of methods and tasks.
    """
    ready = ready_claims(studies, partial(runs_from_reference, reference))
    return [wheel for one in ready if (wheel := wheel_of(one, titles)) is not None]


def wheel_of(one: ReadyClaim, titles: Titles) -> dict[str, Any] | None:
    """Return what the page draws from for one claim.

    None where the document has many seeds or no number of them, where we have no more, where a statistic is not one of
    `OF_A_SEED`, and where a number is infinite.
    """
    tests = one.tests.primary
    if not 0 < one.claim.seeds <= FEW_SEEDS or any(test.statistic not in OF_A_SEED for test in tests):
        return None
    tables = [numbers_of(test, one.runs, one.name) for test in tests]
    shared = sorted(set.intersection(*(set(table.index) for of_test in tables for table in of_test)))
    if len(shared) <= one.claim.seeds:
        return None
    if not all(np.isfinite(table.loc[shared].to_numpy()).all() for of_test in tables for table in of_test):
        return None
    return {
        "claim": one.name,
        "statement": one.claim.statement,
        "seeds": len(shared),
        "few": one.claim.seeds,
        "parts": [part(test, of_test, shared, titles) for test, of_test in zip(tests, tables, strict=True)],
    }


def part(test: ClaimTest, tables: Sequence[pd.DataFrame], seeds: list[int], titles: Titles) -> dict[str, Any]:
    """Return one test: its words, the claimed side, and by task and seed the numbers that it is computed from."""
    found = samples([table.loc[seeds] for table in tables])
    of_means = test.statistic == "ratio" and test.location == "mean"
    single = OF_A_SEED[test.statistic]
    methods, tasks = compared(test, titles), titles.tasks(test.tasks)
    return {
        "words": f"{' against '.join(dict.fromkeys(methods))} on {', '.join(tasks)}",
        "measured": measured(test, *methods).replace("`", ""),
        "supports": supports(criterion(test)),
        "low": test.range[0] if test.range else test.threshold if test.direction == "greater" else None,
        "high": test.range[1] if test.range else test.threshold if test.direction == "less" else None,
        "location": test.location,
        "values": [rounded(single(one.method, one.baseline, **test.options)) for one in found],
        "pairs": [[rounded(one.method), rounded(one.baseline)] for one in found] if of_means else None,
    }


def rounded(values: Numbers | None) -> list[float]:
    """Return numbers in few digits."""
    return [] if values is None else [float(f"{value:.{DIGITS}g}") for value in values]
