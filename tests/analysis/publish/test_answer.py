"""The answer figure: which tests are in it, on which side they stand, and what is counted."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from made_runs import claim_test

from plumbline.analysis.publish import answer
from plumbline.analysis.publish.answer import (
    BETTER,
    COUNTS,
    OPEN,
    PANELS,
    REACH,
    WORSE,
    comparisons,
    draw_answer,
    finding,
    write_answer,
)
from plumbline.analysis.publish.reference_verdicts import read_claims
from plumbline.analysis.verdicts.criterion import criterion

CALIBRATION, SEARCH = PANELS
CLAIMS = Path(__file__).parents[3] / "results" / "reference" / "claims.csv"


def row(metric: str, pair: str, ours: float, low: float, high: float, **changes: Any) -> dict[str, Any]:
    method, baseline = pair.split(" - ")
    tested = criterion(claim_test(metric=metric, method=method, baseline=baseline, task="levy-5"))
    numbers = {"ours": ours, "low": low, "high": high, "seeds": 25, "deviation": 1.0}
    return {"claim": "C1", "role": "primary", **tested, **numbers, **changes}


def found(*rows: dict[str, Any]) -> pd.DataFrame:
    return comparisons(pd.DataFrame(rows), {})


def test_less_regret_is_better_and_a_greater_value_is() -> None:
    of = found(
        row("regret", "cei - ei", -1.0, -2.0, -0.5),
        row("best_f", "cucb - ucb", -1.0, -2.0, -0.5),
    )
    assert of["panel"].tolist() == [SEARCH, SEARCH]
    assert [finding(low, high) for low, high in zip(of["low"], of["high"], strict=True)] == [WORSE, BETTER]
    assert (of["low"] <= of["estimate"]).all()
    assert (of["estimate"] <= of["high"]).all()


def test_a_ratio_is_compared_with_one_in_standard_deviations_of_a_seed() -> None:
    (ratio,) = found(row("regret", "cei - ei", 1.5, 1.2, 1.8, statistic="ratio", deviation=0.25)).itertuples()
    assert (ratio.estimate, ratio.low, ratio.high) == pytest.approx((2.0, 0.8, 3.2))


def test_coverage_counts_by_its_distance_to_the_level_alone() -> None:
    of = found(
        row("holdout_coverage_gap", "cucb - ucb", -0.1, -0.2, -0.05, statistic="distance-difference", of="mean"),
        row("holdout_coverage_gap", "cei - ei", -0.1, -0.2, -0.05, of="mean"),
        row("holdout_coverage_gap", "cucb - ", 0.1, 0.05, 0.2, statistic="value", of="mean", baseline=""),
    )
    assert of["panel"].tolist() == [CALIBRATION]
    assert finding(of["low"][0], of["high"][0]) is BETTER


@pytest.mark.parametrize(
    "pair",
    [
        "cucb - ei",
        "eulbo-kg - elbo-ei",
        "tr-eulbo-ei - elbo-ei",
        "locbo - cbo",
        "calibrated-ei - ucb-ml",
        "bo - random",
    ],
)
def test_methods_that_differ_in_more_than_their_uncertainty_are_not_compared(pair: str) -> None:
    assert found(row("best_f", pair, 1.0, 0.5, 2.0)).empty


@pytest.mark.parametrize(
    "pair", ["cucb - ucb", "tr-eulbo-ei-ppgpr - tr-elbo-ei-ppgpr", "locbo-radio - bo", "calibrated-ei - ei-ml"]
)
def test_methods_that_differ_in_it_alone_are(pair: str) -> None:
    assert len(found(row("best_f", pair, 1.0, 0.5, 2.0))) == 1


@pytest.mark.parametrize(
    "other",
    [{"after": 0.5}, {"baseline_task": "levy-10"}, {"tasks": "levy-5 levy-10"}, {"of": "median"}, {"baseline": ""}],
)
def test_tests_of_anything_but_whole_runs_on_one_task_are_left_out(other: dict[str, Any]) -> None:
    assert found(row("best_f", "cucb - ucb", 1.0, 0.5, 2.0, **other)).empty


def test_a_pair_on_a_task_appears_once_by_its_primary_test() -> None:
    of = found(
        row("regret", "cei - ei", 1.5, 1.2, 1.8, role="secondary", statistic="ratio"),
        row("best_f", "cei - ei", 1.0, 0.5, 2.0, location="median"),
    )
    assert len(of) == 1
    assert of["estimate"][0] < 0


def test_without_an_interval_nothing_is_compared_and_equal_runs_are_undecided() -> None:
    endless = row("regret", "cei - ei", 1.0, -np.inf, np.inf)
    alike = row("regret", "cei - ei", 0.0, 0.0, 0.0)
    assert found(endless).empty
    assert found(alike)["estimate"].tolist() == [0.0]
    assert finding(0.0, 0.0) is OPEN


def test_a_method_under_two_names_is_one_whatever_the_statistic() -> None:
    rows = [
        row("best_f", "locbo-radio - bo", 0.99, 0.97, 1.01, statistic="ratio", tasks="radio"),
        row("best_f", "locbo-radio-alpha-0.25 - bo", -0.08, -0.3, 0.1, tasks="radio"),
        row("best_f", "locbo-radio-alpha-0.35 - bo", -0.09, -0.3, 0.1, tasks="radio"),
    ]
    assert len(comparisons(pd.DataFrame(rows), {})) == 3
    assert len(comparisons(pd.DataFrame(rows), {"locbo-radio-alpha-0.25": "locbo-radio"})) == 2


def test_the_figure_has_a_point_a_comparison_and_says_how_many() -> None:
    of = found(
        row("regret", "cei - ei", -1.0, -2.0, -0.5),
        row("regret", "cucb - ucb", 9.0, 8.9, 9.1),
        row("regret", "cnei - nei", 0.1, -2.0, 2.2),
    )
    ax = draw_answer(of).axes[1]
    marked = [float(line.get_xdata()[0]) for line in ax.lines if len(line.get_xdata()) == 1]
    points = [place for place in marked if place != COUNTS]
    assert points == pytest.approx([REACH, *of["estimate"][1:]])
    assert {text.get_text() for text in ax.texts} >= {"1 worse", "1 undecided", "1 better"}


def test_the_reference_results_have_comparisons_of_every_paper() -> None:
    of = comparisons(read_claims(CLAIMS), {})
    assert set(of.loc[of["panel"] == SEARCH, "paper"]) == set(answer.PAPERS)
    assert np.isfinite(of[["estimate", "low", "high"]]).all(axis=None)


@pytest.mark.slow
def test_it_is_written_twice_the_same_where_there_is_something_to_see(tmp_path: Path) -> None:
    claims = pd.DataFrame([row("regret", "cei - ei", -1.0, -2.0, -0.5)])
    for name in "first", "second":
        (tmp_path / name).mkdir()
        write_answer(claims, tmp_path / name, {})
    for kind in "png", "svg":
        first, second = ((tmp_path / name / f"answer.{kind}").read_bytes() for name in ("first", "second"))
        assert first == second
    (tmp_path / "none").mkdir()
    write_answer(claims.assign(statistic="value", baseline=""), tmp_path / "none", {})
    write_answer(claims[:0].astype(object), tmp_path / "none", {})
    assert list((tmp_path / "none").iterdir()) == []
