from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from plumbline.errors import PlumblineError
from plumbline.measures import statistics
from plumbline.measures.statistics import (
    STATISTICS,
    Interval,
    check_statistic,
    find_statistic,
    mean_and_standard_error,
    mean_interval,
    median_interval,
    paired_bootstrap,
)

METHOD = np.array([[4.0, 2.0, 1.0], [6.0, 3.0, 0.0]])
BASELINE = np.array([[4.0, 4.0, 2.0], [5.0, 5.0, 4.0]])

BY_HAND: dict[str, tuple[dict[str, Any], float]] = {
    "final-difference": ({}, ((1 - 2) + (0 - 4)) / 2),
    "mean-difference": ({}, (0 - 2 - 1 + 1 - 2 - 4) / 6),
    # Means over seeds 5, 2.5, .5 against 4.5, 4.5, 3.
    "share-of-steps-below": ({}, 2 / 3),
    "share-above": ({"level": 0.5}, 1 / 2),
    "final-mean": ({}, 0.5),
    "mean-level": ({}, 16 / 6),
    # Standard deviations .5 and 1 of the last columns.
    "spread-difference": ({}, 0.5 - 1.0),
    "deviation-difference": ({"level": 3.0}, ((2 - 1) + (3 - 1)) / 2),
    "mean-ratio": ({}, 16 / 24),
    "median-ratio": ({}, 2.5 / 4),
    "final-ratio": ({}, 1 / 6),
    # A tie and a win, two losses, two losses: of the method 0, of the baseline 1 - 3 / 4.
    "consistent-wins": ({}, 1 / 4),
}
"""Options of each statistic, and its value for `METHOD` and `BASELINE`."""

PAIRED = (
    "final-difference",
    "mean-difference",
    "share-of-steps-below",
    "spread-difference",
    "deviation-difference",
    "mean-ratio",
    "median-ratio",
    "final-ratio",
    "consistent-wins",
)


@pytest.fixture
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 1_000)


def example(name: str) -> tuple[dict[str, Any], float]:
    if name not in BY_HAND:
        pytest.fail(f"statistic {name!r} has no example: add one to BY_HAND in {__file__}")
    return BY_HAND[name]


class TestEachStatistic:
    @pytest.mark.parametrize("name", STATISTICS)
    def test_by_hand(self, name: str) -> None:
        options, value = example(name)
        assert_allclose(STATISTICS[name](METHOD, BASELINE, **options), value, rtol=1e-12)

    @pytest.mark.parametrize("name", STATISTICS)
    def test_a_batch_is_the_same_as_one_after_another(self, name: str) -> None:
        options, _ = example(name)
        rng = np.random.default_rng(0)
        method, baseline = rng.normal(size=(2, 7, 4, 3))
        alone = [STATISTICS[name](m, b, **options) for m, b in zip(method, baseline, strict=True)]
        assert_allclose(STATISTICS[name](method, baseline, **options), alone, rtol=1e-12)

    @pytest.mark.parametrize("name", PAIRED)
    def test_comparisons_need_a_baseline(self, name: str) -> None:
        with pytest.raises(PlumblineError, match="`baseline`"):
            STATISTICS[name](METHOD, None)

    def test_ties_are_not_below_and_not_above(self) -> None:
        assert STATISTICS["share-of-steps-below"](METHOD, METHOD) == 0
        assert STATISTICS["share-above"](METHOD, None, level=1.0) == 0

    def test_an_unknown_one_is_answered_with_the_nearest(self) -> None:
        with pytest.raises(PlumblineError, match="unknown statistic 'final-men': did you mean 'final-mean'"):
            find_statistic("final-men")


class TestPairedBootstrap:
    def test_the_value_is_the_statistic(self) -> None:
        found = paired_bootstrap(find_statistic("final-difference"), METHOD, BASELINE, "K")
        assert found.value == -2.5
        assert (found.low, found.high) == (-4.0, -1.0)  # two seeds: both drawn alike in half of the resamples

    def test_it_repeats_itself_and_depends_on_the_name(self) -> None:
        method, baseline = np.random.default_rng(0).normal(size=(2, 12, 3))
        first, again, other = (
            paired_bootstrap(find_statistic("mean-difference"), method, baseline, name)
            for name in ("K1.0", "K1.0", "K1.1")
        )
        assert first == again
        assert first.value == other.value
        assert first != other

    def test_it_does_not_touch_global_streams(self) -> None:
        np.random.seed(0)  # noqa: NPY002
        before = np.random.get_state()[1].tolist()  # noqa: NPY002
        paired_bootstrap(find_statistic("final-mean"), METHOD, None, "K")
        assert np.random.get_state()[1].tolist() == before  # noqa: NPY002

    @pytest.mark.parametrize("name", ["final-difference", "mean-difference"])
    def test_what_a_seed_does_to_both_methods_drops_out(self, name: str) -> None:
        rng = np.random.default_rng(1)
        method, baseline = rng.normal(size=(2, 10, 4))
        hard = 100 * rng.normal(size=(10, 1))
        plain = paired_bootstrap(find_statistic(name), method, baseline, "K")
        shifted = paired_bootstrap(find_statistic(name), method + hard, baseline + hard, "K")
        assert_allclose(shifted, plain, rtol=1e-9, atol=1e-9)

    def test_breaking_the_pairs_widens_the_interval(self) -> None:
        rng = np.random.default_rng(2)
        hard = 10 * rng.normal(size=(20, 1))
        method, baseline = hard + rng.normal(size=(20, 1)), hard + rng.normal(size=(20, 1))
        statistic = find_statistic("final-difference")
        paired = paired_bootstrap(statistic, method, baseline, "K")
        broken = paired_bootstrap(statistic, method, np.roll(baseline, 1, axis=0), "K")
        assert broken.high - broken.low > 3 * (paired.high - paired.low)

    def test_it_is_the_percentiles_of_a_literal_loop(self) -> None:
        method, baseline = np.random.default_rng(3).normal(size=(2, 8, 3))
        rng = np.random.default_rng(0)
        values = []
        for _ in range(20_000):
            drawn = rng.integers(8, size=8)
            values.append((method[drawn] - baseline[drawn])[:, -1].mean())
        low, high = np.quantile(values, [0.025, 0.975])
        found = paired_bootstrap(find_statistic("final-difference"), method, baseline, "K")
        assert found.low == pytest.approx(low, abs=0.03 * (high - low))
        assert found.high == pytest.approx(high, abs=0.03 * (high - low))

    @pytest.mark.usefixtures("fewer_resamples")
    @pytest.mark.parametrize("name", ["final-mean", "final-difference"])
    def test_its_interval_covers_the_truth_about_as_often_as_it_says(self, name: str) -> None:
        rng = np.random.default_rng(4)
        times = 300
        covered = 0
        for i in range(times):
            method, baseline = rng.normal(size=(2, 30, 1))
            found = paired_bootstrap(find_statistic(name), 0.7 + method, baseline, f"{i}")
            covered += found.low <= 0.7 <= found.high
        assert 0.88 < covered / times < 0.985

    def test_one_seed_has_no_interval(self) -> None:
        found = paired_bootstrap(find_statistic("final-mean"), METHOD[:1], None, "K")
        assert found.value == 1.0
        assert np.isnan([found.low, found.high]).all()

    def test_seeds_that_agree_have_an_interval_of_no_length(self) -> None:
        same = np.ones((6, 3))
        assert paired_bootstrap(find_statistic("final-mean"), same, None, "K") == Interval(1.0, 1.0, 1.0)

    def test_options_reach_the_statistic(self) -> None:
        found = paired_bootstrap(find_statistic("share-above"), METHOD, None, "K", level=-1.0)
        assert found == Interval(1.0, 1.0, 1.0)


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
    """Where a round of a seed has no value, statistics are over those that have one."""

    METHOD = np.array([[4.0, np.nan, 1.0], [6.0, 3.0, np.nan], [5.0, 1.0, 4.0]])
    BASELINE = np.array([[4.0, 4.0, 2.0], [5.0, 5.0, 4.0], [np.nan, 3.0, 5.0]])

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("final-difference", (-1 - 1) / 2),
            ("mean-difference", (0 - 1 + 1 - 2 - 2 - 1) / 6),
            ("share-above", 1 / 2),
            ("final-mean", 2.5),
            ("mean-level", 24 / 7),
            ("mean-ratio", (24 / 7) / (32 / 8)),
            ("median-ratio", 4 / 4),
            ("final-ratio", 2.5 / (11 / 3)),
            ("spread-difference", 1.5 - np.std([2, 4, 5])),
        ],
    )
    def test_by_hand(self, name: str, value: float) -> None:
        options = {"level": 1.5} if name == "share-above" else {}
        assert_allclose(STATISTICS[name](self.METHOD, self.BASELINE, **options), value, rtol=1e-12)

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
        check_statistic("share-above", ["level"], baseline=False)
        check_statistic("final-difference", [], baseline=True)

    @pytest.mark.parametrize(
        ("name", "options", "message"),
        [
            ("final-diff", [], "unknown statistic 'final-diff': did you mean"),
            ("share-above", ["levl"], "unknown option of statistic 'share-above' 'levl': did you mean 'level'"),
            ("final-mean", ["level"], "unknown option of statistic 'final-mean' 'level'"),
            ("mean-ratio", [], "statistic 'mean-ratio' compares with a `baseline`"),
        ],
    )
    def test_mistakes_are_one_line(self, name: str, options: list[str], message: str) -> None:
        with pytest.raises(PlumblineError, match=message):
            check_statistic(name, options, baseline=False)

    def test_those_that_compare_are_those_that_need_a_baseline(self) -> None:
        assert {*STATISTICS} - {*statistics.ALONE} == {*PAIRED}
