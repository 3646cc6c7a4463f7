import math
from pathlib import Path
from typing import Any

import made_evidence as made
import numpy as np
import pytest

from plumbline.analysis.claims import COLUMNS, MIN_SEEDS, Outcome, Verdict, claim_rows, describe, outcome, verdict
from plumbline.analysis.collect import Evidence, evidence
from plumbline.analysis.draw import judge_claims
from plumbline.analysis.statistics import Interval
from plumbline.errors import PlumblineError
from plumbline.study import Claim, ClaimTest


def claim_test(**changes: Any) -> ClaimTest:
    return ClaimTest.model_validate(
        {
            "statistic": "final-difference",
            "metric": "regret",
            "problem": "bowl",
            "method": "calibrated",
            "baseline": "plain",
            "direction": "less",
            **changes,
        }
    )


def claim(*tests: ClaimTest) -> Claim:
    return Claim(source="section 5", statement="It is better.", experiment="E", tests=tests)


def planted(folder: Path, *, ahead: float, seeds: int = 8, spread: float = 0.3, fewer: int = 0) -> Evidence:
    """Return trials in which `calibrated` ends `ahead` of `plain`, give or take `spread` from seed to seed.

    The baseline has `fewer` seeds than the method.
    """
    rng = np.random.default_rng(0)
    gain = ahead + spread * rng.permutation(np.linspace(-1.0, 1.0, seeds))
    trials = [made.trial(method="plain", seed=seed, regret=lambda s, i: 10 - i) for seed in range(seeds - fewer)]
    for seed in range(seeds):
        trials.append(made.trial(method="calibrated", seed=seed, regret=lambda s, i: 10 - i - gain[s]))
    return evidence(made.write(folder / "planted.parquet", *trials))


class TestOutcome:
    @pytest.mark.parametrize(
        ("direction", "low", "high", "expected"),
        [
            ("less", -3.0, -1.0, "holds"),
            ("less", 1.0, 3.0, "fails"),
            ("less", -1.0, 1.0, "open"),
            ("less", -1.0, 0.0, "open"),
            ("greater", 1.0, 3.0, "holds"),
            ("greater", -3.0, -1.0, "fails"),
            ("greater", -1.0, 1.0, "open"),
            ("greater", 0.0, 1.0, "open"),
            ("greater", math.nan, math.nan, "open"),
            ("less", math.nan, -1.0, "open"),
        ],
    )
    def test_it_holds_or_fails_with_the_whole_interval(
        self, direction: str, low: float, high: float, expected: Outcome
    ) -> None:
        for threshold in (0.0, 5.0, -0.5):
            interval = Interval((low + high) / 2 + threshold, low + threshold, high + threshold)
            assert outcome(interval, claim_test(direction=direction, threshold=threshold), 30) == expected

    def test_few_seeds_leave_it_open(self) -> None:
        assert outcome(Interval(-2, -3, -1), claim_test(), MIN_SEEDS) == "holds"
        assert outcome(Interval(-2, -3, -1), claim_test(), MIN_SEEDS - 1) == "open"


class TestVerdict:
    @pytest.mark.parametrize(
        ("outcomes", "expected"),
        [
            (["holds"], "reproduced"),
            (["holds", "holds"], "reproduced"),
            (["holds", "open"], "partly"),
            (["holds", "fails"], "partly"),
            (["holds", "fails", "open"], "partly"),
            (["fails"], "not reproduced"),
            (["fails", "open"], "not reproduced"),
            (["open"], "inconclusive at this scale"),
            (["open", "open"], "inconclusive at this scale"),
        ],
    )
    def test_each_combination(self, outcomes: list[Outcome], expected: Verdict) -> None:
        assert verdict(outcomes) == expected
        assert verdict(outcomes[::-1]) == expected


class TestPlantedClaims:
    @pytest.mark.parametrize(
        ("ahead", "expected"),
        [(1.0, "reproduced"), (-1.0, "not reproduced"), (0.01, "inconclusive at this scale")],
    )
    def test_the_verdict_is_what_was_planted(self, folder: Path, ahead: float, expected: str) -> None:
        rows = claim_rows("K", claim(claim_test()), planted(folder, ahead=ahead), "quick", "synthetic")
        assert rows["verdict"].tolist() == [expected]
        assert rows["ours"].iloc[0] == pytest.approx(-ahead, abs=1e-9)
        assert rows["low"].iloc[0] <= rows["ours"].iloc[0] <= rows["high"].iloc[0]

    def test_some_tests_that_hold_are_partly(self, folder: Path) -> None:
        both = claim(claim_test(), claim_test(statistic="share-above", baseline=None, options={"level": 100.0}))
        # No seed is above 100, so that share is 0: not less than 0, not greater either.
        rows = claim_rows("K", both, planted(folder, ahead=1.0), "quick", "synthetic")
        assert rows["outcome"].tolist() == ["holds", "open"]
        assert set(rows["verdict"]) == {"partly"}

    def test_four_seeds_settle_nothing(self, folder: Path) -> None:
        found = planted(folder, ahead=5.0, seeds=4)
        rows = claim_rows("K", claim(claim_test()), found, "quick", "synthetic")
        assert rows["outcome"].tolist() == ["open"]
        assert rows["verdict"].tolist() == ["inconclusive at this scale"]
        assert rows["seeds"].tolist() == [4]

    def test_only_pairs_count(self, folder: Path) -> None:
        """Eight seeds of the method and two of the baseline are two pairs."""
        rows = claim_rows("K", claim(claim_test()), planted(folder, ahead=5.0, fewer=6), "quick", "synthetic")
        assert rows["seeds"].tolist() == [2]
        assert rows["outcome"].tolist() == ["open"]

    def test_unpaired_seeds_do_not_move_the_statistic(self, folder: Path) -> None:
        rows = claim_rows("K", claim(claim_test()), planted(folder, ahead=1.0, spread=0.0, fewer=2), "quick", "")
        assert rows["ours"].tolist() == pytest.approx([-1.0])

    def test_a_baseline_on_another_problem(self, folder: Path) -> None:
        trials = [
            made.trial(problem, "plain", seed, regret=lambda s, i, ahead=ahead: 10 - i - ahead)
            for problem, ahead in (("bowl", 2.0), ("valley", 0.5))
            for seed in range(6)
        ]
        across = claim_test(method="plain", baseline="plain", baseline_problem="valley")
        rows = claim_rows("K", claim(across), evidence(made.write(folder / "r.parquet", *trials)), "quick", "")
        assert rows["ours"].tolist() == pytest.approx([-1.5])
        assert "plain - plain (of valley) on bowl" in rows["statistic"].iloc[0]

    def test_a_method_without_a_baseline(self, folder: Path) -> None:
        only = claim_test(statistic="final-mean", baseline=None, threshold=5.0)
        rows = claim_rows("K", claim(only), planted(folder, ahead=1.0, spread=0.0), "quick", "synthetic")
        last = made.INITIAL + made.ROUNDS - 1
        assert rows["ours"].tolist() == pytest.approx([10 - last - 1.0])
        assert rows["outcome"].tolist() == ["holds"]

    def test_a_metric_that_the_method_does_not_have_is_one_line(self, folder: Path) -> None:
        trials = [made.trial(method=m, seed=s, model=False) for m in made.METHODS for s in range(5)]
        found = evidence(made.write(folder / "e.parquet", *trials))
        with pytest.raises(PlumblineError, match="calibration_score"):
            claim_rows("K", claim(claim_test(metric="calibration_score")), found, "quick", "synthetic")

    def test_a_method_that_is_not_there_is_one_line(self, folder: Path) -> None:
        with pytest.raises(PlumblineError, match="no trials of 'other' on 'bowl'"):
            claim_rows("K", claim(claim_test(method="other")), planted(folder, ahead=1.0), "quick", "")


class TestRows:
    def test_one_a_test_with_all_columns(self, folder: Path) -> None:
        tests = (claim_test(published="much"), claim_test(statistic="mean-difference"))
        rows = claim_rows("K7", claim(*tests), planted(folder, ahead=1.0), "desk", "zinc250k")
        assert rows.columns.tolist() == COLUMNS
        assert len(rows) == 2
        first = rows.iloc[0]
        assert first[["claim", "experiment", "source", "statement", "published", "preset", "data"]].tolist() == [
            "K7",
            "E",
            "section 5",
            "It is better.",
            "much",
            "desk",
            "zinc250k",
        ]
        assert first["seeds"] == 8
        assert first["budget"] == f"{made.INITIAL + made.ROUNDS} evaluations"

    def test_the_columns_that_the_design_promises(self) -> None:
        promised = (
            "claim experiment source statement statistic published ours low high seeds budget preset data verdict"
        )
        assert set(promised.split()) <= set(COLUMNS)

    def test_they_repeat_themselves(self, folder: Path) -> None:
        found = planted(folder, ahead=1.0)
        first, again = (claim_rows("K", claim(claim_test()), found, "quick", "") for _ in range(2))
        assert first.equals(again)

    def test_a_test_in_words(self) -> None:
        words = describe(
            claim_test(statistic="share-above", options={"level": 1.0}, threshold=0.5, direction="greater")
        )
        assert words == "share-above of regret, calibrated - plain on bowl, level 1.0: greater than 0.5"
        assert "plain" not in describe(claim_test(baseline=None))


BETTER = {
    "source": "section 5",
    "statement": "It is better.",
    "experiment": "E",
    "tests": [claim_test(problem="forrester").model_dump()],
}


class TestJudgeClaims:
    @pytest.fixture
    def records(self, folder: Path) -> Path:
        trials = [made.trial("forrester", method, seed) for method in made.METHODS for seed in range(6)]
        return made.write(folder / "E.parquet", *trials)

    def test_claims_of_the_records_that_are_there(self, records: Path) -> None:
        plan = made.plan(
            {"E": made.experiment(), "F": made.experiment()}, {"K1": BETTER, "K2": BETTER | {"experiment": "F"}}
        )
        frame = judge_claims(plan, {"E": records})
        assert frame["claim"].tolist() == ["K1"]
        assert frame["preset"].tolist() == ["quick"]
        assert frame["data"].tolist() == ["synthetic"]
        assert frame["outcome"].tolist() == ["open"]  # both curves are the same

    def test_tests_of_trials_that_the_preset_leaves_out_are_left_out(self, records: Path) -> None:
        """A preset may run a smaller problem in the place of the document's."""
        elsewhere = claim_test(problem="levy-20").model_dump()
        both = BETTER | {"tests": [*BETTER["tests"], elsewhere]}
        plan = made.plan({"E": made.experiment()}, {"K1": both, "K2": BETTER | {"tests": [elsewhere]}})
        frame = judge_claims(plan, {"E": records})
        assert frame["claim"].tolist() == ["K1"]
        assert "levy-20" not in frame["statistic"].iloc[0]

    def test_a_claim_that_is_not_run_has_no_verdict(self, records: Path) -> None:
        plan = made.plan({"E": made.experiment()}, {"K1": BETTER, "K2": {"source": "p. 1", "statement": "So it is."}})
        assert judge_claims(plan, {"E": records})["claim"].tolist() == ["K1"]

    def test_no_claims_is_an_empty_table(self, records: Path) -> None:
        frame = judge_claims(made.plan({"E": made.experiment()}), {"E": records})
        assert frame.empty
        assert frame.columns.tolist() == COLUMNS

    def test_a_claim_about_a_dataset_follows_its_stand_in(self, folder: Path) -> None:
        """A claim names the problem as the document does; a run on stand-ins has it under another label."""
        problem = {
            "name": "molecules",
            "label": "{dataset}-{target}",
            "options": {"dataset": "zinc250k", "target": "qed"},
        }
        experiment = made.experiment(grid=[{"problems": [problem], "methods": list(made.METHODS)}])
        about = BETTER | {"tests": [claim_test(problem="zinc250k-qed").model_dump()]}
        plan = made.plan({"E": experiment}, {"K": about})
        labels = {spec.problem.label for spec in plan.studies["made-up"].trials("E", "quick", plan.stand_ins)}
        trials = [made.trial(label, method, seed) for label in labels for method in made.METHODS for seed in range(5)]
        frame = judge_claims(plan, {"E": made.write(folder / "E.parquet", *trials)})
        assert frame["data"].tolist() == ["generated-molecules (generated, stands in for zinc250k)"]
