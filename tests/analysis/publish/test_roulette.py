"""Seed roulette: draws from the numbers on the page give the rates that verdicts have."""

from pathlib import Path
from typing import Any

import made_evidence as made
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import claim_test, runs

from plumbline.analysis.publish.claim_pages import Titles
from plumbline.analysis.publish.reference_verdicts import read_claims
from plumbline.analysis.publish.roulette import OF_A_SEED, wheel_of, wheels
from plumbline.analysis.verdicts.judge import ExperimentRuns, ReadyClaim
from plumbline.analysis.verdicts.part_results import part_result
from plumbline.analysis.verdicts.small_sample_rates import claimed_rate
from plumbline.analysis.verdicts.verdict import RunnableTests
from plumbline.statistics.over_seeds import SHARES, STATISTICS, Location, Sample, infer
from plumbline.study.claims import Claim, ClaimTest
from plumbline.study.methods_and_tasks import MethodsAndTasks
from plumbline.study.plan import load_plan
from plumbline.study.settings import read_config

TITLES = Titles(MethodsAndTasks())
Values = dict[tuple[str, str], list[float]]


def ready(numbers: Values, test: ClaimTest, seeds: int = 3) -> ReadyClaim:
    claim = Claim.model_validate({"source": "p. 1", "statement": "It is less.", "seeds": seeds})
    about = ExperimentRuns(pd.DataFrame(), "quick", "synthetic")
    study = made.plan({}).studies["made-up"]
    return ReadyClaim(study, "K1", claim, RunnableTests((test,), (), True), runs(numbers), about, (), [])


def drawn_rate(wheel: dict[str, Any], draws: int) -> float:
    """What the script of the page does."""
    all_seeds = np.tile(np.arange(wheel["seeds"]), (draws, 1))
    seeds = np.random.default_rng(0).permuted(all_seeds, axis=1)[:, : wheel["few"]]
    return float(np.all([claimed(part, seeds) for part in wheel["parts"]], axis=0).mean())


def claimed(part: dict[str, Any], seeds: np.ndarray) -> np.ndarray:
    def picked(rows: list[list[float]]) -> np.ndarray:
        return np.concatenate([np.array(of)[seeds] for of in rows], axis=1)

    if part["pairs"]:
        ours, theirs = (picked([of[side] for of in part["pairs"]]).sum(axis=1) for side in (0, 1))
        value = ours / theirs
    else:
        value = getattr(np, part["location"])(picked(part["values"]), axis=1)
    low = -np.inf if part["low"] is None else part["low"]
    return (value > low) & (value < (np.inf if part["high"] is None else part["high"]))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"location": "median"},
        {"statistic": "ratio", "threshold": 1.0},
        {"statistic": "share-lower", "direction": "greater", "threshold": 0.5},
        {"direction": "within", "range": (-1.0, 0.1)},
        {"statistic": "distance-difference", "options": {"level": 0.5}},
    ],
)
def test_draws_on_the_page_have_the_rates_of_verdicts(changes: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    numbers = {("bowl", method): rng.gamma(2.0, 1.0, 30).tolist() for method in ("plain", "calibrated")}
    test = claim_test(**changes)
    wheel = wheel_of(ready(numbers, test), TITLES)
    assert wheel is not None
    rate = claimed_rate([part_result(test, runs(numbers), "K1")], 3, "K1")
    assert drawn_rate(wheel, 2_000) == pytest.approx(rate, abs=0.04)
    assert 0.02 < rate < 0.98, "a rate at its end would show nothing"


LOCATIONS: list[tuple[str, Location]] = [
    (name, location)
    for name in sorted(OF_A_SEED)
    for location in ("mean", "median")
    if location == "mean" or name not in SHARES
]


@given(st.lists(st.floats(0.1, 9), min_size=2, max_size=6), st.sampled_from(LOCATIONS))
def test_numbers_of_seeds_are_those_of_the_statistic(values: list[float], of: tuple[str, Location]) -> None:
    name, location = of
    ours, theirs = np.array(values), np.array(values[::-1])
    found = infer(name, [Sample(ours, theirs)], location, "K1", {}).value
    single = getattr(np, location)(OF_A_SEED[name](ours, theirs))
    assert (ours.sum() / theirs.sum() if of == ("ratio", "mean") else single) == pytest.approx(found)


@pytest.mark.parametrize(
    ("test", "seeds", "ours"),
    [
        (claim_test(), 0, 9),
        (claim_test(), 50, 99),
        (claim_test(), 3, 3),
        (claim_test(statistic="spread-difference"), 3, 9),
        (claim_test(statistic="consistent-wins", direction="greater", threshold=0.5), 3, 9),
    ],
)
def test_what_cannot_be_drawn_is_left_out(test: ClaimTest, seeds: int, ours: int) -> None:
    numbers: Values = {("bowl", method): [float(i) for i in range(ours)] for method in ("plain", "calibrated")}
    assert wheel_of(ready(numbers, test, seeds), TITLES) is None


def test_an_infinite_number_is_not_drawn() -> None:
    numbers: Values = {("bowl", method): [1.0, 2.0, np.inf, 4.0, 5.0] for method in ("plain", "calibrated")}
    assert wheel_of(ready(numbers, claim_test()), TITLES) is None


def test_every_statistic_is_one_of_a_seed_or_known_not_to_be() -> None:
    assert set(STATISTICS) - set(OF_A_SEED) == {"spread-difference", "consistent-wins"}


@pytest.mark.slow
def test_claims_on_file_with_a_rate_can_be_drawn(root: Path) -> None:
    plan = load_plan(read_config(root / "config/config.yaml"), root)
    found = wheels(plan.studies.values(), root / "results/reference", Titles(plan.library))
    claims = read_claims(root / "results/reference/claims.csv").drop_duplicates("claim").set_index("claim")
    assert {wheel["claim"] for wheel in found} == set(claims.index[claims["pattern"].notna()])
    for wheel in found:
        assert drawn_rate(wheel, 2_000) == pytest.approx(claims["pattern"][wheel["claim"]], abs=0.04), wheel["claim"]
