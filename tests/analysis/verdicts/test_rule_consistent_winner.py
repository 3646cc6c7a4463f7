"""Claim A2, that neither method is consistently the better one, simulated where it is true and where it is not.

With the claim's own thresholds and the paper's twenty seeds. That no method wins is shown by counts, exactly, for both
methods: it is seen nearly always where the winner changes, but in one case of four or five only where both are alike on
every task, and never with five seeds. What it never does, or as good as never, is to overlook a winner.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plumbline.analysis.verdicts.part_results import PartResult, samples
from plumbline.analysis.verdicts.rule import judgements, verdict
from plumbline.statistics.over_seeds import infer
from plumbline.study.claims import ClaimTest
from plumbline.study.experiments import load_study

REPETITIONS = 50


@pytest.fixture(scope="module", params=["primary", "secondary"])
def test(request: pytest.FixtureRequest) -> ClaimTest:
    """The first of the claim's tests of either role: over four tasks, and over three."""
    study = load_study(Path(__file__).parents[3] / "config/studies/approximation.yaml")
    tests = getattr(study.claims["A2"], request.param)[0]
    (one,) = tests.each()
    return one


def verdicts(test: ClaimTest, advantages: Sequence[float], seeds: int) -> Counter[str]:
    """Return the verdicts on simulated studies in which one method is ahead by so many standard deviations a task."""
    rng = np.random.default_rng(0)
    found: Counter[str] = Counter()
    for number in range(REPETITIONS):
        gaps = np.array(advantages[: len(test.tasks)]) + rng.standard_normal((seeds, len(test.tasks)))
        numbers = tuple(pd.DataFrame({"method": gap, "baseline": 0.0}) for gap in gaps.T)
        inferred = infer(test.statistic, samples(numbers), test.location, f"{number}", test.options)
        found[verdict(judgements([PartResult(test, numbers, inferred)], f"{number}"))] += 1
    return found


def test_it_is_the_statistic_and_threshold_of_the_study(test: ClaimTest) -> None:
    assert (test.statistic, test.direction, test.threshold) == ("consistent-wins", "less", 0.65)
    assert len(test.tasks) in (3, 4)


@pytest.mark.parametrize(
    ("advantages", "least"), [((1.0, -1.0, 1.0, -1.0), 0.9), ((1.5, 1.5, -1.5, 1.5), 0.95), ((0.0,) * 4, 0.1)]
)
def test_it_is_accepted_where_the_winner_changes_and_now_and_then_where_there_is_none(
    test: ClaimTest, advantages: Sequence[float], least: float
) -> None:
    found = verdicts(test, advantages, seeds=20)
    assert found["reproduced"] >= least * REPETITIONS, found
    assert not found["not reproduced"]


@pytest.mark.parametrize("sign", [1, -1])
def test_it_is_rejected_where_one_wins_throughout(test: ClaimTest, sign: int) -> None:
    """By two standard deviations on each task, 98% of seeds."""
    found = verdicts(test, [2.0 * sign] * 4, seeds=20)
    assert found["not reproduced"] >= 0.9 * REPETITIONS, found
    assert not found["reproduced"]


@pytest.mark.parametrize("advantage", [1.0, 0.7, 0.386])
def test_a_smaller_lead_throughout_is_never_overlooked(test: ClaimTest, advantage: float) -> None:
    """Leads of 84% and 76% of seeds, and of 65%, which is the boundary."""
    found = verdicts(test, [advantage] * 4, seeds=20)
    assert found["reproduced"] <= 0.04 * REPETITIONS, found


@pytest.mark.parametrize("advantages", [(2.0,) * 4, (1.0, -1.0, 1.0, -1.0), (0.0,) * 4])
def test_five_seeds_settle_nothing(test: ClaimTest, advantages: Sequence[float]) -> None:
    assert verdicts(test, advantages, seeds=5)["inconclusive at this scale"] == REPETITIONS
