"""The rule: from what parts come to, to their outcomes and the verdict."""

from collections.abc import Sequence
from typing import Any

import made_evidence as made
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.analysis.verdicts.part_results import PartResult, inferred
from plumbline.analysis.verdicts.rule import HALF, MIN_SEEDS, Judgement, counts, judgements, probabilities, verdict
from plumbline.statistics.inference import TAIL
from plumbline.statistics.means import Mean
from plumbline.study.claims import ClaimTest
from plumbline.study.verdicts import OUTCOMES, Outcome, Verdict

TEST = made.TEST
RATIO = {"statistic": "ratio", "threshold": 1.0}


def part(
    ratio: float, seeds: int = 40, spread: float = 0.2, like: float | None = None, changes: Any = None, **about: Any
) -> PartResult:
    """Return a part whose method has `ratio` times the baseline's regret, give or take `spread` of it in a seed.

    Args:
        ratio: of the means, exactly.
        seeds: of both.
        spread: of the differences.
        like: the same ratio of the floor's regret; None without one.
        changes: of the test.
        about: further fields of the result.
    """
    test = ClaimTest.model_validate(TEST | (changes or {}))
    rng = np.random.default_rng(0)
    baseline = np.exp(0.3 * rng.standard_normal(seeds))
    away = rng.standard_normal(seeds) * spread * baseline.mean()

    def table(ratio: float) -> pd.DataFrame:
        return pd.DataFrame({"method": ratio * baseline + away - away.mean(), "baseline": baseline})

    floor = None if like is None else inferred(test, [table(like)], "floor")
    return PartResult(test, (table(ratio),), inferred(test, [table(ratio)], "a"), floor=floor, **about)


def outcomes(*parts: PartResult) -> list[Outcome]:
    return [one.outcome for one in judgements(parts, "K.primary")]


def judged(*outcomes: Outcome, smaller: Sequence[int] = ()) -> list[Judgement]:
    return [Judgement(one, 0.5, 0.001 if i in smaller else 0.3) for i, one in enumerate(outcomes)]


class TestProbabilities:
    FOUND = Mean(np.random.default_rng(0).normal(1.0, 0.5, size=20), "a")

    def test_of_a_threshold(self) -> None:
        above, below = self.FOUND.p_above(0.8), self.FOUND.p_below(0.8)
        assert probabilities(ClaimTest(**TEST | {"threshold": 0.8}), self.FOUND) == (below, above)
        assert probabilities(ClaimTest(**TEST | {"threshold": 0.8, "direction": "greater"}), self.FOUND) == (
            above,
            below,
        )

    @pytest.mark.parametrize(
        ("ends", "holds", "fails"),
        [((0.0, 2.0), True, False), ((-2.0, 0.5), False, True), ((1.5, 3.0), False, True), ((0.9, 1.1), False, False)],
    )
    def test_alike_is_shown_by_an_interval_within_and_refuted_by_one_outside(
        self, ends: tuple[float, float], holds: bool, fails: bool
    ) -> None:
        test = ClaimTest(**TEST | {"direction": "within", "range": ends})
        against, against_it = probabilities(test, self.FOUND)
        assert (against <= TAIL, against_it <= TAIL) == (holds, fails)
        low, high = self.FOUND.interval()
        assert holds == (ends[0] < low and high < ends[1])


class TestVerdict:
    @pytest.mark.parametrize(
        ("parts", "expected"),
        [
            (["holds"], "reproduced"),
            (["holds", "holds"], "reproduced"),
            (["holds", "open"], "partly"),
            (["holds", "too small"], "partly"),
            (["holds", "cannot show"], "partly"),
            (["holds", "fails"], "mixed"),
            (["holds", "fails", "open"], "mixed"),
            (["fails"], "not reproduced"),
            (["fails", "open"], "not reproduced"),
            (["fails", "too small", "cannot show"], "not reproduced"),
            (["too small"], "too small to matter"),
            (["too small", "cannot show"], "too small to matter"),
            (["too small", "open"], "inconclusive at this scale"),
            (["open"], "inconclusive at this scale"),
            (["open", "cannot show"], "inconclusive at this scale"),
            (["cannot show"], "inconclusive at this scale"),
        ],
    )
    def test_each_combination(self, parts: list[Outcome], expected: Verdict) -> None:
        assert verdict(judged(*parts)) == expected
        assert verdict(judged(*parts)[::-1]) == expected
        assert verdict(judged(*parts), complete=False) == ("partly" if expected == "reproduced" else expected)

    @pytest.mark.parametrize(
        ("parts", "expected"),
        [
            (["holds", "holds"], "smaller than published"),
            (["open", "open"], "smaller than published"),
            (["too small", "holds"], "smaller than published"),
            (["fails", "open"], "not reproduced"),
            (["holds", "fails"], "mixed"),
        ],
    )
    def test_a_published_size_that_is_excluded(self, parts: list[Outcome], expected: Verdict) -> None:
        assert verdict(judged(*parts, smaller=[0])) == expected

    def test_a_worse_result_gives_no_milder_verdict(self) -> None:
        """A part whose published size is excluded says so even if it is so far behind that it fails too early."""
        for outcome in ("open", "cannot show"):
            assert verdict(judged(outcome, "open", smaller=[0])) == "smaller than published"

    @given(st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=6), st.booleans())
    def test_nothing_is_said_against_a_claim_without_a_part_that_says_it(
        self, parts: list[Outcome], complete: bool
    ) -> None:
        found = verdict(judged(*parts), complete)
        assert (found in ("mixed", "not reproduced")) == ("fails" in parts)
        assert (found in ("reproduced", "partly", "mixed")) == ("holds" in parts)
        assert found != "smaller than published"


class TestSizes:
    HALVED = {"published": {"words": "half", "ratio": 0.5}, "matters": {"ratio": 0.9}}  # noqa: RUF012

    def test_the_sign_goes_before_what_matters(self) -> None:
        """A gain of 4% is shown, and a gain of a tenth excluded: the sentence claims a sign."""
        assert outcomes(part(0.96, spread=0.05, changes=self.HALVED)) == ["holds"]

    @pytest.mark.parametrize(
        ("ratio", "spread", "expected", "smaller"),
        [
            (0.5, 0.2, "holds", False),
            (0.8, 0.2, "holds", True),
            (0.9, 1.0, "open", True),
            (1.0, 0.2, "too small", True),
            (1.3, 0.2, "fails", True),
            (0.75, 2.0, "open", False),
        ],
    )
    def test_a_truth_near_and_far_from_the_published_one(
        self, ratio: float, spread: float, expected: Outcome, smaller: bool
    ) -> None:
        (found,) = judgements([part(ratio, spread=spread, changes=self.HALVED)], "K")
        assert (found.outcome, found.smaller) == (expected, smaller)

    def test_a_reading_is_as_weak_as_it_may_be(self) -> None:
        """1.2 is excluded and 1.1 is not, which one may have misread by a tenth."""
        about = {**RATIO, "direction": "greater", "published": {"value": 1.2}}
        exact = part(1.1, spread=0.1, changes=about)
        blurred = part(1.1, spread=0.1, changes=about | {"published": {"value": 1.2, "error": 0.1}})
        assert [one.smaller for one in judgements([exact], "K")] == [True]
        assert [one.smaller for one in judgements([blurred], "K")] == [False]

    def test_sizes_are_corrected_for_their_number_alone(self) -> None:
        close = part(0.6, spread=0.3, changes=self.HALVED)
        (alone,) = judgements([close], "K")
        first, *_ = judgements([close, *[part(0.6, spread=0.3)] * 5], "K")
        assert first.size_p == alone.size_p
        first, *_ = judgements([close] * 6, "K")
        assert first.size_p == pytest.approx(min(1.0, 6 * alone.size_p), rel=0.6)

    def test_a_size_of_another_budget_is_not_compared(self) -> None:
        short = {"rounds": 10, "full": 100, "evaluations": 20}
        at = self.HALVED | {"published": {"ratio": 0.5, "evaluations": 20}}
        assert not judgements([part(1.0, changes=self.HALVED, **short)], "K")[0].smaller
        assert judgements([part(1.0, changes=at, **short)], "K")[0].smaller
        assert not judgements([part(1.0, changes=at, **short | {"evaluations": 21})], "K")[0].smaller


class TestWhatCannotShow:
    def test_an_optimum_that_the_baseline_always_finds(self) -> None:
        solved = part(1.0)
        solved = solved._replace(numbers=(solved.numbers[0].assign(method=0.0, baseline=0.0),))
        solved = solved._replace(found=inferred(solved.test, solved.numbers, "a"))
        (found,) = judgements([solved], "K")
        assert (found.outcome, found.because) == ("cannot show", "a perfect method would not hold either")

    def test_it_does_not_count_in_the_correction_of_others(self) -> None:
        solved, fair = part(1.0), part(0.95, spread=0.2)
        solved = solved._replace(numbers=(solved.numbers[0].assign(method=0.0, baseline=0.0),))
        first, *_ = judgements([fair, solved, solved], "K")
        assert first.p == judgements([fair], "K")[0].p

    @pytest.mark.parametrize("baseline", [0.0, 1e-3])
    def test_a_metric_without_a_best_value_has_no_ceiling(self, baseline: float) -> None:
        one = part(1.0, changes={"metric": "best_f", "direction": "greater"})
        one = one._replace(numbers=(one.numbers[0].assign(baseline=baseline),))
        assert outcomes(one) == ["open"]

    @pytest.mark.parametrize(
        ("rounds", "full", "expected"),
        [(50, 100, "fails"), (49, 100, "cannot show"), (1, 1, "fails"), (100, 0, "cannot show")],
    )
    def test_a_part_on_less_than_half_of_the_budget_does_not_fail(
        self, rounds: int, full: int, expected: Outcome
    ) -> None:
        assert outcomes(part(1.5, rounds=rounds, full=full)) == [expected]
        assert outcomes(part(0.5, rounds=rounds, full=full)) == ["holds"]
        assert (rounds / max(full, 1e-9) >= HALF and full > 0) == (expected == "fails")

    def test_nor_is_an_effect_that_matters_excluded_there(self) -> None:
        matters = {"matters": {"ratio": 0.9}}
        assert outcomes(part(1.0, changes=matters)) == ["too small"]
        assert outcomes(part(1.0, changes=matters, rounds=1, full=10)) == ["open"]

    @pytest.mark.parametrize(
        ("ratio", "floor", "expected"),
        [(1.0, 1.05, "cannot show"), (1.0, 2.0, "holds"), (1.0, None, "holds"), (1.6, 1.05, "fails")],
    )
    def test_where_random_search_is_alike_too_to_be_alike_shows_nothing(
        self, ratio: float, floor: float | None, expected: Outcome
    ) -> None:
        alike = {**RATIO, "direction": "within", "range": (0.8, 1.25), "floor": "random"}
        (found,) = judgements([part(ratio, like=floor, changes=alike)], "K")
        assert found.outcome == expected
        assert (found.because == "that random would fail the test is not shown") == (expected == "cannot show")

    def test_neither_to_be_better_is_a_likeness(self) -> None:
        """So early that it cannot hold; but one method may be seen to win throughout."""
        neither = {"statistic": "consistent-wins", "direction": "less", "threshold": 0.65, "metric": "best_f"}
        won, lost = np.ones(20), -np.ones(20)
        for numbers, short, whole in (((won, lost), "cannot show", "holds"), ((won, won), "cannot show", "fails")):
            tables = tuple(pd.DataFrame({"method": one, "baseline": 0.0}) for one in numbers)
            test = part(1.0, changes=neither).test
            one = PartResult(test, tables, inferred(test, tables, "a"))
            assert outcomes(one._replace(rounds=4, full=10)) == [short]
            assert outcomes(one) == [whole]

    def test_few_seeds_are_open(self) -> None:
        assert outcomes(part(0.1, seeds=MIN_SEEDS - 1)) == ["open"]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (["holds"], "1 holds"),
        (["holds", "fails", "open", "fails"], "1 holds, 2 fail, 1 open"),
        (["open", "open"], "2 open"),
        (["holds", "holds", "fails"], "2 hold, 1 fails"),
        (["cannot show", "too small", "holds", "too small"], "1 holds, 2 too small, 1 cannot show"),
    ],
)
def test_contradictions_are_counted(found: list[Outcome], words: str) -> None:
    assert counts(found) == words
