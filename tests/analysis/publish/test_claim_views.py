"""Claims as the report shows them: places in the forest plot, and words."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import claim_test, runs

from plumbline.analysis.publish.claim_pages import Titles
from plumbline.analysis.publish.claim_views import REACH, lane, part_view
from plumbline.analysis.verdicts.criterion import criterion
from plumbline.analysis.verdicts.part_results import part_result
from plumbline.analysis.verdicts.rule import Judgement
from plumbline.analysis.verdicts.verdict import row
from plumbline.study.methods_and_tasks import MethodsAndTasks


def judged(**changes: Any) -> dict[str, Any]:
    """The row of a test, but for its runs: 12 seeds of mean -1."""
    usual = {"ours": -1.0, "low": -1.5, "high": -0.5, "seeds": 12, "deviation": 0.8, "published": ""}
    return {**criterion(claim_test()), **usual, "budget": "8 evaluations", **changes}


class TestLane:
    def test_the_claimed_side_is_at_the_right(self) -> None:
        less, greater = lane(claim_test(), judged()), lane(claim_test(direction="greater"), judged())
        assert less.claimed == greater.claimed == (50, 100)
        assert less.low < less.estimate < less.high
        assert less.estimate - 50 == pytest.approx(50 - greater.estimate)
        assert less.low > 50, "the interval excludes the threshold"

    def test_the_unit_is_the_standard_deviation_of_a_seed(self) -> None:
        values = np.random.default_rng(0).normal(-0.4, 1.0, 40)
        numbers = {("bowl", "calibrated"): values.tolist(), ("bowl", "plain"): [0.0] * 40}
        found = row(part_result(claim_test(), runs(numbers), "K1"), Judgement("holds", 0.01), 1)
        place = lane(claim_test(), found).estimate
        assert (place - 50) / 50 * REACH == pytest.approx(-values.mean() / values.std(ddof=1), abs=0.005)

    def test_a_range_is_in_the_middle(self) -> None:
        found = lane(claim_test(direction="within", range=(-1.2, -0.8)), judged())
        assert found.estimate == 50
        assert sum(found.claimed) == pytest.approx(100)
        assert 0 < found.claimed[0] < 50

    @pytest.mark.parametrize(("value", "place"), [(0.0, 50), (-0.3, 100), (0.2, 0)])
    def test_without_any_spread_it_is_at_the_threshold_or_at_an_end(self, value: float, place: float) -> None:
        assert lane(claim_test(), judged(ours=value, low=value, high=value, deviation=0.0)).estimate == place

    def test_too_few_seeds_for_an_interval_have_a_place(self) -> None:
        found = lane(claim_test(), judged(low=-math.inf, high=math.inf, seeds=3))
        assert (found.low, found.high) == (0, 100)
        assert found.estimate == pytest.approx(50 + 50 / 0.8 / REACH, abs=0.1)

    @pytest.mark.parametrize(
        ("statistic", "said", "place"),
        [
            ("difference", {"value": -0.5, "words": "-.5 (read off)"}, 100),
            ("difference", {"words": "about half"}, None),
            ("difference", {"ratio": 0.5}, None),
            ("ratio", {"ratio": 0.5}, 100),
        ],
    )
    def test_a_published_number_has_a_mark(self, statistic: str, said: dict[str, Any], place: float | None) -> None:
        threshold = {"ratio": 1.0}.get(statistic, 0.0)
        test = claim_test(statistic=statistic, published=said, threshold=threshold)
        assert lane(test, judged(ours=0.9, low=0.89, high=0.91, deviation=0.01)).published == place

    @given(*[st.floats(allow_nan=True, allow_infinity=True)] * 4, st.integers(1, 99), st.booleans())
    def test_nothing_leaves_its_lane(
        self, ours: float, low: float, high: float, deviation: float, seeds: int, ranged: bool
    ) -> None:
        test = claim_test(direction="within", range=(-1.0, 2.0)) if ranged else claim_test()
        found = lane(test, judged(ours=ours, low=low, high=high, deviation=deviation, seeds=seeds))
        for place in (found.estimate, found.low, found.high, *found.claimed):
            assert 0 <= place <= 100


def test_a_test_that_the_study_has_no_longer_shows_its_words() -> None:
    found = part_view(None, judged(metric="what_was"), Titles(MethodsAndTasks()))
    assert found.lane is None
    assert "difference of final what_was" in found.words


def test_words_name_methods_tasks_and_budget() -> None:
    found = part_view(claim_test(), judged(), Titles(MethodsAndTasks()))
    assert found.compared == "calibrated against plain"
    assert found.words.endswith("calibrated minus plain, on bowl; 8 evaluations")
    assert found.methods == ("calibrated", "plain")
