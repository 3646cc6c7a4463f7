from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from plumbline.core.errors import PlumblineError
from plumbline.statistics import over_seeds as statistics
from plumbline.statistics.exact import ConsistentWins, Median, Share
from plumbline.statistics.inference import Inference
from plumbline.statistics.means import Mean, Ratio
from plumbline.statistics.over_seeds import (
    STATISTICS,
    Location,
    Sample,
    check_statistic,
    consistent_wins,
    difference,
    find_statistic,
    infer,
    mean_and_standard_error,
    mean_interval,
    median_interval,
    ratio,
    share_lower,
)

INF = np.inf
METHOD = np.array([[4.0, 2.0, 1.0], [6.0, 3.0, 0.0]])
"""Two seeds, three rounds."""

TASKS = (
    Sample(np.array([1.0, 0.0, 4.0]), np.array([2.0, 4.0, 4.0])),
    Sample(np.array([6.0]), np.array([3.0])),
)
"""Three seeds of one task, and one of another."""

BY_HAND: dict[str, list[tuple[dict[str, Any], Location, type[Inference], float]]] = {
    "difference": [({}, "mean", Mean, (-1 - 4 + 0 + 3) / 4), ({}, "median", Median, -0.5)],
    "ratio": [({}, "mean", Ratio, 11 / 13), ({}, "median", Median, (0.5 + 1.0) / 2)],
    "value": [({}, "mean", Mean, 11 / 4), ({}, "median", Median, 2.5)],
    "distance-difference": [
        ({"level": 3.0}, "mean", Mean, ((2 - 1) + (3 - 1) + 0 + (3 - 0)) / 4),
        ({}, "median", Median, -0.5),
    ],
    # Medians 2.5 and 3.5: distances 1.5, 2.5, 1.5, 3.5 against 1.5, .5, .5, .5.
    "spread-difference": [({}, "mean", Mean, (0 + 2 + 1 + 3) / 4), ({}, "median", Median, 1.5)],
    "share-above": [({"level": 1.0}, "mean", Share, 2 / 4), ({}, "mean", Share, 3 / 4)],
    "share-lower": [({}, "mean", Share, 2.5 / 4)],
    "share-higher": [({}, "mean", Share, 1.5 / 4)],
}
"""Options, location, what is inferred, and its value for `TASKS` in one sample."""

TASK_BY_TASK = (TASKS[0], Sample(np.array([6.0, 6.0, 6.0]), np.array([3.0, 7.0, 6.0])))
"""Three seeds of two tasks: the method is ahead in half a seed of one, and in one and a half of the other."""


class TestEachStatistic:
    @pytest.mark.parametrize("name", sorted(set(STATISTICS) - set(statistics.TASK_BY_TASK)))
    def test_by_hand(self, name: str) -> None:
        if name not in BY_HAND:
            pytest.fail(f"statistic {name!r} has no example: add one to BY_HAND in {__file__}")
        for options, location, kind, value in BY_HAND[name]:
            found = infer(name, TASKS, location, "a", options)
            assert isinstance(found, kind)
            assert found.value == pytest.approx(value)

    def test_those_that_look_at_each_task_by_itself(self) -> None:
        found = infer("consistent-wins", TASK_BY_TASK, "mean", "a", {})
        assert isinstance(found, ConsistentWins)
        assert found.value == pytest.approx(max(0.5 / 3, 1 - 1.5 / 3))
        assert statistics.TASK_BY_TASK == ("consistent-wins",)

    @pytest.mark.parametrize("name", sorted(set(STATISTICS) - {"share-above", "value"}))
    def test_a_method_beside_itself_is_neither_ahead_nor_behind(self, name: str) -> None:
        same = np.array([1.0, 0.0, INF, 4.0, 2.0, 3.0, 9.0, 5.0])
        found = infer(name, [Sample(same, same)], "mean", "a", {})
        if name == "ratio":  # of means, which an infinite value has none of
            found = infer(name, [Sample(same, same)], "median", "a", {})
        even = {"ratio": 1.0, "share-lower": 0.5, "share-higher": 0.5, "consistent-wins": 0.5}.get(name, 0.0)
        assert found.value == even
        assert found.p_above(even) > 0.5
        assert found.p_below(even) > 0.5

    @pytest.mark.parametrize("name", ["difference", "share-lower", "share-higher", "consistent-wins"])
    def test_what_a_seed_does_to_both_methods_drops_out(self, name: str) -> None:
        method, baseline, hard = np.random.default_rng(0).normal(size=(3, 12))
        plain = infer(name, [Sample(method, baseline)], "mean", "a", {})
        shifted = infer(name, [Sample(method + 100 * hard, baseline + 100 * hard)], "mean", "a", {})
        assert_allclose(shifted.interval(), plain.interval(), rtol=1e-6)

    def test_breaking_the_pairs_widens_the_interval(self) -> None:
        method, baseline, hard = np.random.default_rng(2).normal(size=(3, 20))
        method, baseline = method + 10 * hard, baseline + 10 * hard
        low, high = infer("difference", [Sample(method, baseline)], "mean", "a", {}).interval()
        broken_low, broken_high = infer(
            "difference", [Sample(method, np.roll(baseline, 1))], "mean", "a", {}
        ).interval()
        assert broken_high - broken_low > 3 * (high - low)

    def test_ties_are_not_above(self) -> None:
        assert infer("share-above", TASKS, "mean", "a", {"level": 4.0}).value == 1 / 4

    def test_a_baseline_of_zero_is_infinitely_surpassed(self) -> None:
        sample = Sample(np.array([1.0, 2.0, 0.0]), np.array([0.0, 1.0, 0.0]))
        assert infer("ratio", [sample], "median", "a", {}).value == 2.0

    def test_an_unknown_one_is_answered_with_the_nearest(self) -> None:
        with pytest.raises(PlumblineError, match="unknown statistic 'diference': did you mean 'difference'"):
            find_statistic("diference")


class TestMeanAndStandardError:
    def test_by_hand(self) -> None:
        mean, error = mean_and_standard_error(METHOD)
        assert_allclose(mean, [5.0, 2.5, 0.5])
        # Two values d apart: standard deviation d / sqrt(2), standard error d / 2.
        assert_allclose(error, [1.0, 0.5, 0.5])

    def test_of_one_seed_it_is_zero(self) -> None:
        mean, error = mean_and_standard_error(METHOD[:1])
        assert_allclose(mean, METHOD[0])
        assert_allclose(error, 0.0)

    def test_of_numbers(self) -> None:
        mean, error = mean_and_standard_error(np.array([1.0, 3.0]))
        assert (float(mean), float(error)) == (2.0, 1.0)


class TestMedianInterval:
    def test_it_holds_the_median_and_shrinks_with_seeds(self) -> None:
        values = np.random.default_rng(0).normal(size=(400, 3))
        low, middle, high = median_interval(values)
        assert_allclose(middle, np.median(values, axis=0))
        assert (low < middle).all()
        assert (middle < high).all()
        few_low, _, few_high = median_interval(values[:20])
        assert (few_high - few_low > high - low).all()

    @pytest.mark.parametrize("n", [1, 2, 5, 6, 7, 20, 101])
    def test_it_is_that_by_which_claims_are_judged(self, n: int) -> None:
        values = np.random.default_rng(n).exponential(size=(n, 2))
        with_gaps = np.concatenate([values, np.full((3, 2), np.nan)])
        low, _, high = median_interval(with_gaps)
        for column in range(2):
            ends = Median(values[:, column]).interval()
            expected = [end if np.isfinite(end) else np.nan for end in ends]
            assert_allclose([low[column], high[column]], expected)

    @pytest.mark.slow
    def test_its_width_is_that_of_theory(self) -> None:
        """The median of n normal values has a standard error of 1.2533 / sqrt(n)."""
        values = np.random.default_rng(1).normal(size=(2_000, 5))
        low, _, high = median_interval(values)
        assert_allclose(high - low, 2 * 1.96 * 1.2533 / np.sqrt(2_000), rtol=0.3)


class TestMeanInterval:
    def test_by_hand(self) -> None:
        """Two seeds: Student's t with one degree of freedom is Cauchy's, whose 85% quantile is tan(.35 pi)."""
        low, mean, high = mean_interval(np.array([[1.0], [3.0]]))
        assert_allclose([low, mean, high], [[2 - np.tan(0.35 * np.pi)], [2.0], [2 + np.tan(0.35 * np.pi)]])

    def test_it_holds_the_truth_as_often_as_it_says(self) -> None:
        values = np.random.default_rng(0).normal(size=(7, 4_000))
        low, _, high = mean_interval(values)
        assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(0.7, abs=0.03)

    def test_one_seed_has_no_width(self) -> None:
        low, mean, high = mean_interval(np.array([[1.0, 2.0]]))
        assert_allclose(low, mean)
        assert_allclose(high, mean)


class TestGaps:
    """Where a round of a seed has no value, means are over those that have one."""

    METHOD = np.array([[4.0, np.nan, 1.0], [6.0, 3.0, np.nan], [5.0, 1.0, 4.0]])

    def test_means_and_errors_are_of_the_seeds_that_are_there(self) -> None:
        mean, error = mean_and_standard_error(self.METHOD)
        assert_allclose(mean, [5, 2, 2.5])
        assert_allclose(error, [1 / np.sqrt(3), np.sqrt(2) / np.sqrt(2), np.sqrt(4.5) / np.sqrt(2)])
        low, middle, high = mean_interval(np.array([[1.0, np.nan], [3.0, 2.0]]))
        assert_allclose((low[1], middle[1], high[1]), 2.0)
        assert low[0] < middle[0] < high[0]

    def test_without_gaps_nothing_changes_to_the_last_digit(self) -> None:
        values = np.random.default_rng(0).normal(size=(7, 40))
        assert mean_and_standard_error(values)[1].tolist() == (np.std(values, axis=0, ddof=1) / np.sqrt(7)).tolist()


class TestCheckStatistic:
    def test_what_is_right_passes(self) -> None:
        check_statistic("share-above", {"level": 1}, baseline=False)
        check_statistic("difference", {}, baseline=True, location="median")
        assert infer("share-above", TASKS, "mean", "a", {"level": "4"}).value == 1 / 4

    @pytest.mark.parametrize(
        ("name", "options", "message"),
        [
            ("diffrence", {}, "unknown statistic 'diffrence': did you mean"),
            ("share-above", {"levl": 1.0}, "unknown option of statistic 'share-above' 'levl': did you mean 'level'"),
            ("value", {"level": 1.0}, "unknown option of statistic 'value' 'level'"),
            *(
                ("share-above", {"level": level}, r"option of statistic 'share-above': level: .*\(got ")
                for level in ("high", None, [1], True, np.nan, np.inf, {}, "nan")
            ),
            ("ratio", {}, "statistic 'ratio' compares with a `baseline`"),
        ],
    )
    def test_mistakes_are_one_line(self, name: str, options: dict[str, Any], message: str) -> None:
        with pytest.raises(PlumblineError, match=message):
            check_statistic(name, options, baseline=False)

    @pytest.mark.parametrize("name", statistics.SHARES)
    def test_counts_of_seeds_have_no_median(self, name: str) -> None:
        check_statistic(name, {}, baseline=True)
        with pytest.raises(PlumblineError, match=f"statistic '{name}' counts seeds, and has no `location: median`"):
            check_statistic(name, {}, baseline=True, location="median")

    @pytest.mark.parametrize("name", STATISTICS)
    def test_those_that_are_said_to_need_no_baseline_need_none(self, name: str) -> None:
        alone = [Sample(np.arange(5.0), None)]
        if name in statistics.ALONE:
            assert infer(name, alone, "mean", "a", {}).value >= 0
        else:
            with pytest.raises(AssertionError):
                infer(name, alone, "mean", "a", {})


def two_samples(n: int = 12) -> Sample:
    generator = np.random.default_rng(3)
    return Sample(generator.exponential(size=n) + 1.0, generator.exponential(size=n) + 2.0)


class TestDeviation:
    """The standard deviation of a seed, in units of the number, by which effects are drawn."""

    def test_of_a_difference_and_of_a_median_it_is_that_of_the_differences(self) -> None:
        sample = two_samples()
        expected = np.std(sample.method - sample.baseline, ddof=1)
        for location in ("mean", "median"):
            for threshold in (0.0, -0.7):
                assert difference([sample], location, "a").deviation(threshold) == pytest.approx(expected)

    def test_of_a_ratio_it_is_in_units_of_the_ratio(self) -> None:
        """Where both methods' values are so many times as large, all is alike."""
        sample = two_samples()
        expected = np.std(sample.method - 0.8 * sample.baseline, ddof=1) / sample.baseline.mean()
        for unit in (1.0, 1e-6, 1e3):
            found = ratio([Sample(unit * sample.method, unit * sample.baseline)], "mean", "a")
            assert found.deviation(0.8) == pytest.approx(expected)

    def test_of_shares_it_is_that_of_a_fair_coin(self) -> None:
        sample = two_samples()
        for found in (share_lower([sample], "mean", "a"), consistent_wins([sample, sample], "mean", "a")):
            assert found.deviation(0.65) == 0.5

    def test_there_is_none_of_one_seed_or_of_infinite_values(self) -> None:
        one, infinite = Sample(np.ones(1), np.zeros(1)), Sample(np.array([1.0, np.inf]), np.zeros(2))
        assert all(np.isnan(difference([some], "mean", "a").deviation(0.0)) for some in (one, infinite))
        alike = Sample(np.ones(5), np.zeros(5))
        assert difference([alike], "mean", "a").deviation(0.0) == 0.0
