"""The primary analyses find what is there, and seldom what is not."""

import numpy as np
import pandas as pd
import pytest

from plumbline.analysis.atlas.interventions import (
    CORRELATIONS,
    INTERVENTIONS,
    PLACEBOS,
    across_methods,
    beside,
    differences,
    mean_over_tasks,
    primary,
    secondary,
    within_methods,
)
from plumbline.study.methods_and_tasks import load_methods_and_tasks

METHODS = sorted({method for one in (*INTERVENTIONS, *PLACEBOS) for pair in one.pairs for method in pair})


def made(
    rng: np.random.Generator, tasks: int = 12, seeds: int = 5, effect: float = 0.0, slope: float = 0.0
) -> pd.DataFrame:
    """Return trials with conformal methods better by `effect`, and scores that grow by `slope` times the error."""
    index = pd.MultiIndex.from_product(
        [[f"t{i}" for i in range(tasks)], METHODS, range(seeds)], names=["task", "method", "seed"]
    )
    frame = index.to_frame(index=False)
    start = rng.normal(size=(tasks, 1, seeds))  # of a task and seed, shared by all methods
    noise = rng.normal(size=(tasks, len(METHODS), seeds))
    error = rng.normal(size=(tasks, len(METHODS), seeds))
    score = start + 0.5 * noise + slope * error
    conformal = [i for i, name in enumerate(METHODS) if name in ("atlas-cei", "atlas-cucb")]
    score[:, conformal] -= effect
    return frame.assign(
        score=score.ravel(), final=score.ravel(), calibration_error=error.ravel(), first_half=error.ravel()
    )


def test_a_difference_is_paired_by_seed_and_then_averaged_over_pairs() -> None:
    rows = [("t", "a", 0, 1.0), ("t", "a", 1, 3.0), ("t", "b", 0, 0.0), ("t", "b", 1, 1.0), ("t", "b", 2, 99.0)]
    rows += [("t", "c", 0, 10.0), ("t", "c", 1, 10.0), ("u", "a", 0, 4.0)]
    trials = pd.DataFrame(rows, columns=["task", "method", "seed", "score"])
    assert differences(trials, [("a", "b")], "score").dropna().to_dict() == {"t": 1.5}
    assert differences(trials, [("a", "b"), ("c", "b")], "score").dropna().to_dict() == {"t": (1.5 + 9.5) / 2}
    for absent in ([("z", "b")], [("a", "z"), ("a", "b")], [("y", "z")]):
        assert differences(trials, absent, "score").dropna().empty, "a task that lacks a pair has no difference"


def test_an_effect_is_found_where_it_is() -> None:
    found = {one.analysis: one for one in primary(made(np.random.default_rng(0), tasks=30, effect=0.5))}
    assert len(found) == 9
    conformal = found.pop("conformal")
    assert conformal.high < 0
    assert conformal.p_corrected < 0.05
    assert conformal.tasks == 30
    assert all(one.p_corrected > 0.05 for one in found.values())


def test_correlations_are_found_where_they_are() -> None:
    found = {one.analysis: one for one in primary(made(np.random.default_rng(1), tasks=30, slope=1.0))}
    for words in CORRELATIONS:
        assert found[words].low > 0
        assert found[words].p_corrected < 0.01


@pytest.mark.slow
def test_nothing_is_seldom_something() -> None:
    """Of forty atlases without any effect at most 5% may have one that is significant after correction.

    Six or more of forty have a probability of .014 at that rate.
    """
    rng = np.random.default_rng(2)
    wrong = sum(min(one.p_corrected for one in primary(made(rng))) < 0.05 for _ in range(40))
    assert wrong < 6


def test_correlations_by_hand() -> None:
    rows = [("t", "a", seed, x, y) for seed, (x, y) in enumerate([(1, 1), (2, 2), (3, 9)])]
    rows += [("t", "b", seed, x, y) for seed, (x, y) in enumerate([(1, 2), (2, 1), (3, 0)])]
    rows += [
        ("t", "few", 0, 1, 1),
        ("t", "few", 1, 2, 2),
        ("t", "still", 0, 1, 1),
        ("t", "still", 1, 1, 2),
        ("t", "still", 2, 1, 3),
    ]
    trials = pd.DataFrame(rows, columns=["task", "method", "seed", "first_half", "final"])
    assert within_methods(trials).to_dict() == {"t": 0.0}  # 1 and -1; too few seeds and no spread do not count
    means = [("t", f"m{i}", 0, float(i), float(i**2)) for i in range(8)] + [("u", "m0", 0, 1.0, 1.0)]
    across = across_methods(pd.DataFrame(means, columns=["task", "method", "seed", "calibration_error", "score"]))
    assert across.to_dict() == {"t": pytest.approx(1.0)}


def test_what_stands_beside() -> None:
    found = beside(made(np.random.default_rng(3)))
    assert [one.of for one in found].count("calibration_error") == len(INTERVENTIONS) + len(PLACEBOS)
    assert all(np.isnan(one.p_corrected) for one in found)
    assert np.isnan(mean_over_tasks(pd.Series([1.0]), "one task", "score").low)


@pytest.mark.slow
def test_parts_of_the_tasks_pairs_and_rounds() -> None:
    """An effect of one pair on one track shows there alone."""
    trials = made(np.random.default_rng(4), tasks=16).assign(early=0.0, observed=np.nan, recommended=1.0)
    tasks = pd.DataFrame({"task": [f"t{i}" for i in range(16)], "track": ["noisy"] * 8 + ["clean"] * 8, "inputs": 2})
    here = trials["task"].isin([f"t{i}" for i in range(8)]) & (trials["method"] == "atlas-cei")
    trials.loc[here, "score"] -= 3
    found = {(one.analysis, one.where): one for one in secondary(trials, tasks)}
    assert found["conformal", "track noisy"].high < 0
    assert found["conformal", "track noisy"].tasks == 8
    assert abs(found["conformal", "track clean"].value) < 0.5
    assert found["conformal", "1 to 3 inputs"].tasks == 16
    assert ("conformal", "more than 10 inputs") not in found
    pairs = [found["conformal", words] for words in ("atlas-cei minus atlas-ei", "atlas-cucb minus atlas-ucb-level")]
    assert pairs[0].value < -1 < pairs[1].value
    assert found["conformal", "first ten rounds"].value == found["conformal", "recommended point"].value == 0
    assert found["conformal", "best observation"].tasks == 0


def test_all_methods_of_the_analyses_are_in_the_configuration() -> None:
    from pathlib import Path

    assert set(METHODS) <= set(load_methods_and_tasks(Path("config")).methods)
