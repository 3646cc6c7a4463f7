"""The answer figure: which tests are in it, on which side they stand, and what is counted."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

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
from plumbline.analysis.publish.verdicts_on_file import read_claims
from plumbline.analysis.verdicts.part_results import describe
from plumbline.study.claims import ClaimTest

CALIBRATION, SEARCH = PANELS
CLAIMS = Path(__file__).parents[3] / "results" / "reference" / "claims.csv"


def row(statistic: str, ours: float, low: float, high: float, **changes: Any) -> dict[str, Any]:
    test = {"claim": "C1", "role": "primary", "statistic": statistic, "ours": ours, "low": low, "high": high}
    return {**test, "seeds": 25, "deviation": 1.0, **changes}


def found(*rows: dict[str, Any]) -> pd.DataFrame:
    return comparisons(pd.DataFrame(rows), {})


def test_less_regret_is_better_and_a_greater_value_is() -> None:
    of = found(
        row("difference of final regret, cei - ei on levy-5: less than 0", -1.0, -2.0, -0.5),
        row("difference of final best_f, cucb - ucb on levy-5: less than 0", -1.0, -2.0, -0.5),
    )
    assert of["panel"].tolist() == [SEARCH, SEARCH]
    assert [finding(low, high) for low, high in zip(of["low"], of["high"], strict=True)] == [WORSE, BETTER]
    assert (of["low"] <= of["estimate"]).all()
    assert (of["estimate"] <= of["high"]).all()


def test_a_ratio_is_compared_with_one_in_standard_deviations_of_a_seed() -> None:
    words = "ratio of final regret, cei - ei on levy-5: within 0.8 and 1.25"
    (ratio,) = found(row(words, 1.5, 1.2, 1.8, deviation=0.25)).itertuples()
    assert (ratio.estimate, ratio.low, ratio.high) == pytest.approx((2.0, 0.8, 3.2))


def test_coverage_counts_by_its_distance_to_the_level_alone() -> None:
    of = found(
        row("distance-difference of mean holdout_coverage_gap, cucb - ucb on levy-5: less than 0", -0.1, -0.2, -0.05),
        row("difference of mean holdout_coverage_gap, cei - ei on levy-5: less than 0", -0.1, -0.2, -0.05),
        row("value of mean holdout_coverage_gap, cucb on levy-5: within -0.05 and 0.05", 0.1, 0.05, 0.2),
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
    assert found(row(f"difference of final best_f, {pair} on levy-5: greater than 0", 1.0, 0.5, 2.0)).empty


@pytest.mark.parametrize(
    "pair", ["cucb - ucb", "tr-eulbo-ei-ppgpr - tr-elbo-ei-ppgpr", "locbo-radio - bo", "calibrated-ei - ei-ml"]
)
def test_methods_that_differ_in_it_alone_are(pair: str) -> None:
    assert len(found(row(f"difference of final best_f, {pair} on levy-5: greater than 0", 1.0, 0.5, 2.0))) == 1


def test_a_pair_on_a_task_appears_once_by_its_primary_test() -> None:
    of = found(
        row("ratio of final regret, cei - ei on levy-5: within 0.8 and 1.25", 1.5, 1.2, 1.8, role="secondary"),
        row("median difference of final best_f, cei - ei on levy-5: greater than 0", 1.0, 0.5, 2.0),
    )
    assert len(of) == 1
    assert of["estimate"][0] < 0


def test_without_an_interval_nothing_is_compared_and_equal_runs_are_undecided() -> None:
    endless = row("difference of final regret, cei - ei on levy-5: less than 0", 1.0, -np.inf, np.inf)
    alike = row("difference of final regret, cei - ei on levy-5: less than 0", 0.0, 0.0, 0.0)
    assert found(endless).empty
    assert found(alike)["estimate"].tolist() == [0.0]
    assert finding(0.0, 0.0) is OPEN


def test_a_method_under_two_names_is_one_whatever_the_statistic() -> None:
    rows = [
        row("ratio of final best_f, locbo-radio - bo on radio: greater than 1", 0.99, 0.97, 1.01),
        row("difference of final best_f, locbo-radio-alpha-0.25 - bo on radio: less than 0", -0.08, -0.3, 0.1),
        row("difference of final best_f, locbo-radio-alpha-0.35 - bo on radio: less than 0", -0.09, -0.3, 0.1),
    ]
    assert len(comparisons(pd.DataFrame(rows), {})) == 3
    assert len(comparisons(pd.DataFrame(rows), {"locbo-radio-alpha-0.25": "locbo-radio"})) == 2


def test_the_figure_has_a_point_a_comparison_and_says_how_many() -> None:
    of = found(
        row("difference of final regret, cei - ei on levy-5: less than 0", -1.0, -2.0, -0.5),
        row("difference of final regret, cucb - ucb on levy-5: less than 0", 9.0, 8.9, 9.1),
        row("difference of final regret, cnei - nei on levy-5: less than 0", 0.1, -2.0, 2.2),
    )
    ax = draw_answer(of).axes[1]
    marked = [float(line.get_xdata()[0]) for line in ax.lines if len(line.get_xdata()) == 1]
    points = [place for place in marked if place != COUNTS]
    assert points == pytest.approx([REACH, *of["estimate"][1:]])
    assert {text.get_text() for text in ax.texts} >= {"1 worse", "1 undecided", "1 better"}


@pytest.mark.parametrize("options", [{}, {"statistic": "ratio"}, {"location": "median"}, {"of": "mean"}])
def test_a_test_is_read_as_it_was_written(options: dict[str, Any]) -> None:
    given = {"metric": "best_f", "method": "cucb", "baseline": "ucb", "task": "levy-5", **options}
    test = ClaimTest.model_validate({"statistic": "difference", "direction": "greater", **given})
    read = answer.TEST.match(describe(test))
    assert read is not None
    assert (read["metric"], read["pair"], read["task"]) == ("best_f", "cucb - ucb", "levy-5")


def test_the_reference_results_have_comparisons_of_every_paper() -> None:
    of = comparisons(read_claims(CLAIMS), {})
    assert set(of.loc[of["panel"] == SEARCH, "paper"]) == set(answer.PAPERS)
    assert np.isfinite(of[["estimate", "low", "high"]]).all(axis=None)


@pytest.mark.slow
def test_it_is_written_twice_the_same_where_there_is_something_to_see(tmp_path: Path) -> None:
    claims = pd.DataFrame([row("difference of final regret, cei - ei on levy-5: less than 0", -1.0, -2.0, -0.5)])
    for name in "first", "second":
        (tmp_path / name).mkdir()
        write_answer(claims, tmp_path / name, {})
    for kind in "png", "svg":
        first, second = ((tmp_path / name / f"answer.{kind}").read_bytes() for name in ("first", "second"))
        assert first == second
    (tmp_path / "none").mkdir()
    write_answer(claims.assign(statistic="value of final regret, cei on levy-5: less than 0"), tmp_path / "none", {})
    write_answer(claims[:0].astype(object), tmp_path / "none", {})
    assert list((tmp_path / "none").iterdir()) == []
