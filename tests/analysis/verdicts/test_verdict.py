"""The table of claims: which tests are judged, and what is told of each."""

import json
from pathlib import Path
from typing import Any

import made_evidence as made
import numpy as np
import pytest

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.runs import Runs, runs_of
from plumbline.analysis.verdicts.rule import MIN_SEEDS
from plumbline.analysis.verdicts.verdict import COLUMNS, FEW_SEEDS, claim_rows, runnable_tests
from plumbline.core.errors import PlumblineError
from plumbline.statistics.inference import TAIL
from plumbline.study.claims import Claim

TEST = made.TEST


def claim(*primary: dict[str, Any], **changes: Any) -> Claim:
    return Claim.model_validate(
        {"source": "section 5", "statement": "It is better.", "experiments": ["E"], "primary": primary or (TEST,)}
        | changes
    )


def rows_of(one: Claim, evidence: Evidence) -> Any:
    """Return the rows of a claim that is judged by all the evidence there is."""
    tests = runnable_tests(one, set(evidence.pairs))
    assert tests is not None
    return claim_rows("K", one, tests, Runs(runs_of(evidence, tests.runs)), "quick", "synthetic")


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


class TestJudged:
    HERE, THERE = TEST, TEST | {"task": "valley"}
    PAIRS = tuple((task, method) for task in ("bowl", "valley") for method in ("calibrated", "plain"))

    def test_parts_that_were_not_run_are_left_out(self) -> None:
        both = claim(TEST | {"task": None, "tasks": ["bowl", "valley"]})
        whole, half = runnable_tests(both, self.PAIRS), runnable_tests(both, self.PAIRS[:2])
        assert whole is not None
        assert half is not None
        assert (len(whole.primary), whole.complete) == (2, True)
        assert (len(half.primary), half.complete) == (1, False)

    def test_of_alternatives_the_first_that_is_whole(self) -> None:
        many = TEST | {"task": None, "tasks": ["bowl", "pit"]}
        for primary, task, whole in (
            ((self.HERE, self.THERE), "bowl", True),
            ((many, self.THERE), "valley", True),
            ((self.HERE | {"task": "pit"}, many), "bowl", False),
        ):
            found = runnable_tests(claim(*primary), self.PAIRS)
            assert found is not None
            assert ([test.task for test in found.primary], found.complete) == ([task], whole)

    def test_without_its_primary_test_nothing_is_judged(self) -> None:
        one = claim(TEST | {"task": "pit"}, secondary=[TEST])
        assert runnable_tests(one, self.PAIRS) is None
        assert runnable_tests(Claim(source="p. 1", statement="Not run."), self.PAIRS) is None

    @pytest.mark.parametrize(("tasks", "tests"), [(["pit", "bowl"], 2), (["pit"], None)])
    def test_parts_alone_are_not_what_the_sentence_is_about(self, tasks: list[str], tests: int | None) -> None:
        found = runnable_tests(claim(TEST | {"task": None, "tasks": tasks, "parts": [self.THERE]}), self.PAIRS)
        assert (found and len(found.primary)) == tests

    def test_what_is_asked_for(self) -> None:
        one = claim(
            secondary=[TEST | {"metric": "nll"}, TEST | {"task": "pit"}], stuck={"metric": "best_f", "above": 1}
        )
        found = runnable_tests(one, self.PAIRS)
        assert found is not None
        assert len(found.secondary) == 1
        assert {metric for _, _, metric in found.runs} == {"regret", "nll", "best_f"}
        assert {pair[:2] for pair in found.runs} == set(self.PAIRS[:2])


class TestPlantedClaims:
    @pytest.mark.parametrize(
        ("ahead", "expected"),
        [(1.0, "reproduced"), (-1.0, "not reproduced"), (0.01, "inconclusive at this scale")],
    )
    def test_the_verdict_is_what_was_planted(self, folder: Path, ahead: float, expected: str) -> None:
        rows = rows_of(claim(), planted(folder, ahead=ahead))
        assert rows["verdict"].tolist() == [expected]
        assert rows["ours"].iloc[0] == pytest.approx(-ahead, abs=1e-9)
        assert rows["low"].iloc[0] <= rows["ours"].iloc[0] <= rows["high"].iloc[0]

    @pytest.mark.parametrize(
        ("ends", "expected"), [((-0.5, 0.5), "reproduced"), ((0.3, 2.0), "not reproduced"), ((-0.02, 0.02), None)]
    )
    def test_to_be_alike_is_more_than_not_to_differ(
        self, folder: Path, ends: tuple[float, float], expected: str | None
    ) -> None:
        alike = claim(TEST | {"direction": "within", "range": ends})
        rows = rows_of(alike, planted(folder, ahead=0.01))
        assert rows["verdict"].iloc[0] == (expected or "inconclusive at this scale")

    def test_only_the_primary_test_decides(self, folder: Path) -> None:
        """One secondary test holds, the other fails: neither counts."""
        beside = [TEST | {"threshold": -2.0}, TEST | {"threshold": 50.0}]
        rows = rows_of(claim(secondary=beside), planted(folder, ahead=0.01))
        assert rows["role"].tolist() == ["primary", "secondary", "secondary"]
        assert rows["outcome"].tolist() == ["open", "fails", "holds"]
        assert set(rows["verdict"]) == {"inconclusive at this scale"}

    def test_parts_are_corrected_for_their_number(self, folder: Path) -> None:
        evidence = planted(folder, ahead=0.2, seeds=10)
        (alone,) = rows_of(claim(), evidence)["p"]
        twelve = rows_of(claim(TEST | {"parts": [TEST] * 11}), evidence)
        assert twelve["p"].tolist() == pytest.approx([12 * alone] * 12, rel=0.6), "each part draws resamples of its own"
        assert TAIL / 12 < alone <= TAIL
        assert rows_of(claim(), evidence)["verdict"].iloc[0] == "reproduced"
        assert twelve["verdict"].iloc[0] == "inconclusive at this scale"

    def test_parts_that_hold_and_parts_that_fail_are_mixed(self, folder: Path) -> None:
        pairs = [["calibrated", "plain"], ["plain", "calibrated"]]
        rows = rows_of(claim(TEST | {"method": None, "baseline": None, "pairs": pairs}), planted(folder, ahead=1.0))
        assert rows["outcome"].tolist() == ["holds", "fails"]
        assert set(rows["verdict"]) == {"mixed"}

    def test_four_seeds_can_settle_what_is_clear_and_three_nothing(self, folder: Path) -> None:
        rows = rows_of(claim(), planted(folder, ahead=9.0, seeds=MIN_SEEDS, spread=0.1))
        assert rows["outcome"].tolist() == ["holds"]
        rows = rows_of(claim(), planted(folder, ahead=9.0, seeds=MIN_SEEDS - 1, spread=0.001))
        assert rows["outcome"].tolist() == ["open"]
        assert rows["verdict"].tolist() == ["inconclusive at this scale"]
        assert rows["seeds"].tolist() == [3]

    def test_only_pairs_count(self, folder: Path) -> None:
        """Eight seeds of the method and two of the baseline are two pairs."""
        rows = rows_of(claim(), planted(folder, ahead=5.0, fewer=6))
        assert rows["seeds"].tolist() == [2]
        assert rows["outcome"].tolist() == ["open"]

    @pytest.mark.parametrize("word", ["cannot fail", "does not apply"])
    def test_what_no_trial_can_decide_is_measured_all_the_same(self, folder: Path, word: str) -> None:
        rows = rows_of(claim(beyond={"verdict": word, "because": "It is so."}), planted(folder, ahead=1.0))
        assert rows[["outcome", "verdict"]].to_numpy().tolist() == [["holds", word]]

    def test_a_metric_that_the_method_does_not_have_is_one_line(self, folder: Path) -> None:
        trials = [made.trial(method=m, seed=s, model=False) for m in made.METHODS for s in range(5)]
        with pytest.raises(PlumblineError, match=r"K\.primary\.0: no seed .* has calibration_score"):
            rows_of(claim(TEST | {"metric": "calibration_score"}), made.read(folder, *trials))


class TestRows:
    @pytest.mark.slow
    def test_one_a_test_with_all_columns(self, folder: Path) -> None:
        one = claim(
            TEST | {"published": "much", "name": "final regret"},
            secondary=[TEST | {"of": "mean"}],
            sentence="Ours wins.",
            seeds=3,
            stuck={"metric": "regret", "above": 2.25},
        )
        rows = rows_of(one, planted(folder, ahead=1.0))
        assert rows.columns.tolist() == COLUMNS
        assert len(rows) == 2
        first = rows.iloc[0]
        assert first[["claim", "experiments", "source", "statement"]].tolist() == [
            "K",
            "E",
            "section 5",
            "It is better.",
        ]
        assert first[["sentence", "role", "test"]].tolist() == ["Ours wins.", "primary", "final regret"]
        assert first["published"] == "much"
        assert first[["preset", "data", "seeds", "paper_seeds"]].tolist() == ["quick", "synthetic", 8, 3]
        assert first["budget"] == f"{made.INITIAL + made.ROUNDS} evaluations"
        assert json.loads(first["stuck"]) == [["calibrated", 1, 8], ["plain", 8, 8]]
        assert first[["pattern", "favourable"]].tolist() == [1.0, 1.0]
        assert first["median"] == pytest.approx(-1.0, abs=0.1)
        assert first["detectable"] > 0

    @pytest.mark.parametrize(("seeds", "asked"), [(0, False), (4, True), (FEW_SEEDS + 1, False)])
    def test_a_pattern_is_asked_of_few_seeds(self, folder: Path, seeds: int, *, asked: bool) -> None:
        rows = rows_of(claim(seeds=seeds), planted(folder, ahead=1.0, seeds=FEW_SEEDS + 3))
        assert rows["pattern"].notna().all() == asked

    @pytest.mark.slow
    def test_they_repeat_themselves(self, folder: Path) -> None:
        found = planted(folder, ahead=1.0)
        first, again = (rows_of(claim(seeds=3), found) for _ in range(2))
        assert first.equals(again)
