"""How often few seeds look as claimed: by brute force, and where methods are alike."""

from typing import Any

import numpy as np
import pytest
from made_runs import Numbers, claim_test, runs

from plumbline.analysis.verdicts import small_sample_rates
from plumbline.analysis.verdicts.part_results import part_result
from plumbline.analysis.verdicts.small_sample_rates import (
    chance_rate,
    claimed_rate,
    connected_components,
    on_claimed_side,
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"threshold": 1.0}, [True, False, False]),
        ({"threshold": 1.0, "direction": "greater"}, [False, False, True]),
        ({"direction": "within", "range": (0.0, 2.0)}, [False, True, False]),
    ],
)
def test_the_claimed_side(changes: dict[str, Any], expected: list[bool]) -> None:
    assert [on_claimed_side(claim_test(**changes), value) for value in (0.0, 1.0, 2.0)] == expected


TEN: Numbers = {
    ("bowl", "calibrated"): [-100.0, *([1.0] * 9)],
    ("bowl", "plain"): [0.0] * 10,
    ("bowl", "other"): [-200.0, *([0.5] * 9)],
}
"""Ten seeds, of which one is far ahead with the method; in all others it is a little behind."""


class TestPattern:
    def test_it_is_how_often_the_one_is_drawn(self) -> None:
        """Three of ten seeds have the first with a probability of .3."""
        one = part_result(claim_test(), runs(TEN), "K")
        assert claimed_rate([one], 3, "K") == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / small_sample_rates.DRAWS))
        assert claimed_rate([one], 3, "K") == claimed_rate([one], 3, "K")

    def test_all_parts_have_to_look_as_claimed_by_the_same_seeds(self) -> None:
        """The other method is ahead where the first is not behind: never are both."""
        first = part_result(claim_test(), runs(TEN), "K")
        second = part_result(claim_test(method="other", direction="greater"), runs(TEN), "K")
        assert claimed_rate([first, second], 3, "K") == 0.0

    def test_seeds_are_told_by_their_numbers(self) -> None:
        """The other method lacks the first seed: what is in both parts are the nine in which nothing is as claimed."""
        fewer = TEN | {("bowl", "other"): [np.nan, *([-0.5] * 9)]}
        both = [part_result(claim_test(method=name), runs(fewer), "K") for name in ("calibrated", "other")]
        assert claimed_rate(both, 3, "K") == 0.0

    def test_where_there_are_no_more_seeds_it_is_not_defined(self) -> None:
        one = part_result(claim_test(), runs(TEN), "K")
        assert np.isnan([claimed_rate([one], seeds, "K") for seeds in (0, 10, 50)]).all()

    @pytest.mark.parametrize("statistic", ["ratio", "spread-difference", "share-lower", "consistent-wins"])
    def test_one_seed_is_enough_to_look_at(self, statistic: str) -> None:
        one = part_result(claim_test(statistic=statistic, baseline="other", threshold=0.5), runs(TEN), "K")
        assert 0 <= claimed_rate([one], 1, "K") <= 1


ERROR = 4 * np.sqrt(0.25 / small_sample_rates.DRAWS)


class TestChance:
    """Of methods that change places at random, whatever they came to."""

    def numbers(self, **shifts: float) -> Numbers:
        rng = np.random.default_rng(0)
        return {("bowl", name): list(rng.normal(shift, 1.0, 40)) for name, shift in shifts.items()}

    def test_two_methods_are_ahead_as_often(self) -> None:
        one = part_result(claim_test(), runs(self.numbers(calibrated=-3.0, plain=0.0)), "K")
        assert claimed_rate([one], 5, "K") > 0.99
        assert chance_rate([one], 5, "K") == pytest.approx(0.5, abs=ERROR)

    def test_the_best_of_three_is_one_of_them_in_a_third(self) -> None:
        there = runs(self.numbers(calibrated=-3.0, plain=0.0, other=5.0))
        both = [part_result(claim_test(baseline=name), there, "K") for name in ("plain", "other")]
        assert chance_rate(both, 5, "K") == pytest.approx(1 / 3, abs=ERROR)

    def test_pairs_that_nothing_joins_change_places_apart(self) -> None:
        there = runs(self.numbers(calibrated=-3.0, plain=0.0, first=7.0, second=9.0))
        pairs = (("calibrated", "plain"), ("first", "second"))
        apart = [part_result(claim_test(method=one, baseline=other), there, "K") for one, other in pairs]
        assert chance_rate(apart, 5, "K") == pytest.approx(1 / 4, abs=ERROR)

    def test_it_is_not_defined_of_one_method_or_of_two_tasks(self) -> None:
        there = runs(self.numbers(calibrated=0.0, plain=0.0) | {("valley", "plain"): [1.0] * 40})
        for changes in ({"statistic": "value", "baseline": None}, {"baseline_task": "valley"}):
            one = part_result(claim_test(**changes), there, "K")
            assert np.isnan(chance_rate([one], 5, "K"))
        one = part_result(claim_test(), there, "K")
        assert np.isnan([chance_rate([one], seeds, "K") for seeds in (0, 40)]).all()


def test_what_pairs_join() -> None:
    a, b, c, d, e = (("t", name) for name in "abcde")
    (whole,) = connected_components([(a, b), (c, d), (b, e), (e, c)])
    assert sorted(whole) == [a, b, c, d, e]
    assert connected_components([(a, b), (c, d)]) == [[a, b], [c, d]]
