import math
from pathlib import Path
from typing import Any

import made_evidence as made
import numpy as np
import pytest

from plumbline.analysis.claims import (
    COLUMNS,
    MIN_SEEDS,
    Outcome,
    Verdict,
    claim_rows,
    counts,
    describe,
    measure,
    outcome,
    verdict,
)
from plumbline.analysis.evidence import Evidence
from plumbline.errors import PlumblineError
from plumbline.measures.statistics import Interval
from plumbline.study import Claim, ClaimTest


def claim_test(**changes: Any) -> ClaimTest:
    return ClaimTest.model_validate(
        {
            "statistic": "final-difference",
            "metric": "regret",
            "task": "bowl",
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
    return made.read(folder, *trials)


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

    def test_a_baseline_on_another_task(self, folder: Path) -> None:
        trials = [
            made.trial(task, "plain", seed, regret=lambda s, i, ahead=ahead: 10 - i - ahead)
            for task, ahead in (("bowl", 2.0), ("valley", 0.5))
            for seed in range(6)
        ]
        across = claim_test(method="plain", baseline="plain", baseline_task="valley")
        rows = claim_rows("K", claim(across), made.read(folder, *trials), "quick", "")
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
        found = made.read(folder, *trials)
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


class TestGaps:
    """A round without a forecast does not blank the run."""

    def gappy(self, folder: Path, method: str) -> Evidence:
        trials = [made.trial(method=name, seed=seed) for name in made.METHODS for seed in range(6)]
        for rows in trials:
            if rows[0]["method"] == method:
                rows[made.INITIAL + 2]["nll"] = None
                rows[-1]["nll"] = None
        return made.read(folder, *trials)

    @pytest.mark.parametrize("gaps", made.METHODS)
    def test_means_are_over_the_rounds_that_both_have(self, folder: Path, gaps: str) -> None:
        found = self.gappy(folder, gaps)
        rows = claim_rows("K", claim(claim_test(statistic="mean-difference", metric="nll")), found, "quick", "")
        there = [i for i in range(made.ROUNDS) if i not in (2, made.ROUNDS - 1)]
        values = {
            name: np.array([made.trial(method=name, seed=s)[made.INITIAL + i]["nll"] for s in range(6) for i in there])
            for name in made.METHODS
        }
        assert rows["ours"].iloc[0] == pytest.approx(np.mean(values["calibrated"] - values["plain"]))
        assert rows["budget"].iloc[0].endswith(f" evaluations, values in {made.ROUNDS - 2} of {made.ROUNDS} rounds")

    def test_it_is_said_over_how_many(self, folder: Path) -> None:
        trials = [made.trial(method=name, seed=seed) for name in made.METHODS for seed in range(6)]
        trials[0][made.INITIAL + 2]["nll"] = None
        rows = claim_rows(
            "K", claim(claim_test(statistic="mean-difference", metric="nll")), made.read(folder, *trials), "", ""
        )
        assert not math.isnan(rows["low"].iloc[0])
        assert rows["budget"].iloc[0].endswith(f", values in {(6 * made.ROUNDS - 1) / 6:.4g} of {made.ROUNDS} rounds")


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        (["holds"], "1 holds"),
        (["holds", "fails", "open", "fails"], "1 holds, 2 fail, 1 open"),
        (["open", "open"], "2 open"),
        (["holds", "holds", "fails"], "2 hold, 1 fails"),
    ],
)
def test_contradictions_are_counted(outcomes: list[Outcome], words: str) -> None:
    assert counts(outcomes) == words


class TestSeveralTasks:
    def evidence(self, folder: Path, gains: dict[str, float], seeds: int = 6) -> Evidence:
        """Return trials in which `calibrated` ends above `plain` by a gain a task, which noise does not hide."""
        trials = []
        for task, gain in gains.items():
            for seed in range(seeds):
                trials.append(made.trial(task, "plain", seed, regret=lambda s, i: 10 - i))
                trials.append(made.trial(task, "calibrated", seed, regret=lambda s, i, gain=gain: 10 - i - gain))
        return made.read(folder, *trials)

    def test_the_statistic_is_of_the_last_values_a_task_in_the_place_of_a_round(self, folder: Path) -> None:
        found = self.evidence(folder, {"bowl": 1.0, "valley": -3.0})
        test = claim_test(statistic="mean-difference", metric="best_f", also=("valley",))
        assert measure(test, found, "X").interval.value == pytest.approx((1.0 - 3.0) / 2)
        assert "on bowl, valley" in describe(test)

    def test_seeds_that_a_task_lacks_do_not_count(self, folder: Path) -> None:
        trials = [made.trial("bowl", m, s) for m in made.METHODS for s in range(6)]
        trials += [made.trial("valley", m, s) for m in made.METHODS for s in range(2)]
        assert measure(claim_test(also=("valley",)), made.read(folder, *trials), "X").seeds == 2

    @pytest.mark.parametrize(
        ("gains", "share"), [((1.0, -1.0), 0.0), ((1.0, 2.0), 1.0), ((-1.0, -2.0), 1.0), ((0.0, 0.0), 0.5)]
    )
    def test_consistent_wins(self, folder: Path, gains: tuple[float, float], share: float) -> None:
        found = self.evidence(folder, dict(zip(("bowl", "valley"), gains, strict=True)))
        test = claim_test(statistic="consistent-wins", metric="best_f", also=("valley",))
        assert measure(test, found, "X").interval.value == share
