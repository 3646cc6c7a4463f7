"""Means and ratios of means: by hand, against Student and Fieller, and at the edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm, ttest_1samp

from plumbline.statistics.inference import TAIL
from plumbline.statistics.means import Mean, Ratio

INF = np.inf


def drawn(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


class TestMean:
    def test_of_normal_values_it_is_no_shorter_than_students(self) -> None:
        values = drawn(30)
        students = ttest_1samp(values, 0.0).confidence_interval(0.95)
        low, high = Mean(values, "a").interval()
        assert low <= students.low + 1e-12
        assert high >= students.high - 1e-12
        assert high - low < 1.15 * (students.high - students.low)
        assert Mean(values, "a").p_above(-0.3) >= ttest_1samp(values, -0.3, alternative="greater").pvalue - 1e-12

    def test_of_skewed_values_it_reaches_farther_to_the_side_of_the_tail(self) -> None:
        found = Mean(np.exp(1.5 * drawn(20)), "a")
        low, high = found.interval()
        students = ttest_1samp(found.values, 0.0).confidence_interval(0.95)
        assert high - students.high > 0.1 * (students.high - students.low)
        assert low == pytest.approx(students.low)

    @pytest.mark.slow
    def test_the_bootstrap_is_a_literal_loop(self) -> None:
        """Studentised means of 20,000 samples drawn one by one."""
        values = np.exp(drawn(8))
        rng = np.random.default_rng(1)
        scores = []
        for _ in range(20_000):
            sample = rng.choice(values, 8)
            scores.append((sample.mean() - values.mean()) / (sample.std(ddof=1) / np.sqrt(8)))
        for level in (0.025, 0.2, 0.5, 0.9):
            assert np.quantile(Mean(values, "a").scores, level) == pytest.approx(
                np.quantile(scores, level), rel=0.1, abs=0.04
            )

    @settings(max_examples=25)
    @given(
        st.integers(4, 12),
        st.integers(0, 1_000),
        st.floats(-50, 50),
        st.floats(0.01, 100),
        st.sampled_from([-1.0, 1.0]),
    )
    def test_it_moves_with_its_values(self, n: int, seed: int, shift: float, scale: float, sign: float) -> None:
        """Shifted and scaled; mirrored too."""
        values = np.exp(drawn(n, seed))
        low, high = Mean(values, "a").interval()
        ends = Mean(shift + sign * scale * values, "a").interval()
        expected = sorted(shift + sign * scale * end for end in (low, high))
        # The bootstrap's quantiles are order statistics of the same place from both ends.
        assert_allclose(ends, expected, rtol=1e-6, atol=1e-6 * (abs(shift) + scale))

    @pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
    def test_few_equal_values_leave_everything_open(self, n: int) -> None:
        found = Mean(np.full(n, 0.1), "a")
        assert found.value == pytest.approx(0.1)
        assert found.interval() == (-INF, INF)
        assert found.p_above(-100.0) == 0.5**n
        assert found.p_below(100.0) == 0.5**n
        assert found.p_above(0.2) == 1.0

    def test_of_six_equal_values_a_sign_test_is_left(self) -> None:
        found = Mean(np.full(6, 0.1), "a")
        assert found.interval() == (found.value, found.value)
        assert found.p_above(0.0) == 0.5**6
        assert found.p_above(found.value) == found.p_below(found.value) == 1.0

    def test_equal_values_are_told_from_rounding(self) -> None:
        """Means of a tenth are off by one unit in the last place."""
        found = Mean(np.array([0.1, 0.1 + 1e-17, 0.3 - 0.2, 0.1]), "a")
        assert found.error == 0.0

    @given(value=st.floats(1e-6, 1e6), seeds=st.integers(5, 40))
    def test_a_constant_at_a_threshold_is_not_beyond_it(self, value: float, seeds: int) -> None:
        """The mean of twenty times .9 is less than .9 by rounding."""
        found = Mean(np.full(seeds, value), "a")
        assert found.p_above(value) == found.p_below(value) == 1.0
        assert found.p_above(value * (1 - 1e-9)) == found.p_below(value * (1 + 1e-9)) == 0.5**seeds

    def test_one_stuck_run_of_four_shows_nothing(self) -> None:
        """Three zeros and a one: most resamples that lack the one have no spread."""
        found = Mean(np.array([0.0, 0.0, 0.0, 1.0]), "a")
        assert found.interval()[1] == INF
        assert found.p_below(10.0) > TAIL

    @pytest.mark.parametrize("bad", [INF, -INF])
    def test_an_infinite_value_leaves_everything_open(self, bad: float) -> None:
        found = Mean(np.array([1.0, 2.0, 3.0, 4.0, bad]), "a")
        assert found.interval() == (-INF, INF)
        assert found.p_above(-9.0) == found.p_below(9.0) == 1.0
        assert found.detectable == INF

    def test_what_is_detectable_is_seen_four_times_in_five(self) -> None:
        """Of normal values, whose deviation is known: 2.8 standard errors with many seeds."""
        assert Mean(drawn(2_000), "a").detectable * np.sqrt(2_000) == pytest.approx(1.96 + 0.84, rel=0.05)
        assert Mean(drawn(1), "a").detectable == INF

    def test_no_global_stream_is_touched(self) -> None:
        np.random.seed(0)  # noqa: NPY002
        before = np.random.get_state()[1].tolist()  # noqa: NPY002
        Mean(drawn(5), "a").interval()
        assert np.random.get_state()[1].tolist() == before  # noqa: NPY002

    @pytest.mark.parametrize(("skewed", "least"), [(False, 0.92), (True, 0.83)])
    def test_it_covers_the_truth_about_as_often_as_it_says(self, skewed: bool, least: float) -> None:
        """Ten seeds, 300 times: .95 and .89 with more; what the percentile bootstrap has is .90 and .79."""
        covered = 0
        for seed in range(300):
            values = np.exp(drawn(10, seed)) - np.exp(0.5) if skewed else drawn(10, seed)
            low, high = Mean(values, f"{seed}").interval()
            covered += low <= 0 <= high
        assert covered / 300 > least


class TestRatio:
    def test_of_a_constant_it_is_a_mean(self) -> None:
        values = 5 + drawn(12)
        found, mean = Ratio(values, np.full(12, 2.0), "a"), Mean(values / 2.0, "a")
        assert_allclose(found.interval(), mean.interval(), rtol=1e-5)
        assert found.p_above(2.3) == pytest.approx(mean.p_above(2.3))

    def test_it_is_fiellers_where_values_are_normal(self) -> None:
        """Roots of the quadratic in r where (mean a - r mean b)^2 = t^2 var(a - r b) / n."""
        from scipy.stats import t as student

        a, b = 6 + drawn(40), 4 + drawn(40, 1)
        reach = student.ppf(1 - TAIL, 39) ** 2 / 40
        (aa, ab), (_, bb) = np.cov(a, b)
        roots = np.roots(
            [b.mean() ** 2 - reach * bb, -2 * (a.mean() * b.mean() - reach * ab), a.mean() ** 2 - reach * aa]
        )
        low, high = Ratio(a, b, "a").interval()
        assert low <= min(roots) + 1e-5
        assert high >= max(roots) - 1e-5
        assert_allclose((low, high), sorted(roots), rtol=0.03)

    def test_a_denominator_that_may_be_zero_has_no_end(self) -> None:
        a, b = 5 + drawn(6), 0.5 + 2 * drawn(6, 3)
        assert b.mean() > 0
        found = Ratio(a, b, "a")
        assert INF in np.abs(found.interval())

    def test_of_a_negative_or_no_denominator_nothing_is_said(self) -> None:
        for b in (np.zeros(8), -np.ones(8) + 0.1 * drawn(8)):
            found = Ratio(1 + 0.1 * drawn(8), b, "a")
            assert np.isnan(found.value)
            assert found.interval() == (-INF, INF)
            assert found.p_above(0.0) == found.p_below(0.0) == 1.0
            assert np.isnan(found.detectable)

    def test_of_a_method_and_itself_it_is_one(self) -> None:
        b = 4 + drawn(12)
        found = Ratio(b, b, "a")
        assert found.value == found.median == 1.0
        assert_allclose(found.interval(), (1.0, 1.0), atol=1e-5)
        assert found.p_above(1.0) == found.p_below(1.0) == 1.0
        assert found.p_above(0.9) <= TAIL

    def test_units_do_not_matter(self) -> None:
        a, b = 3 + drawn(9), 2 + 0.3 * drawn(9, 1)
        first, second = Ratio(a, b, "a"), Ratio(1e-3 * a, 1e-3 * b, "a")
        assert_allclose(first.interval(), second.interval(), rtol=1e-5)
        assert first.p_above(1.2) == pytest.approx(second.p_above(1.2))

    def test_its_probability_is_that_of_the_mean_of_gaps(self) -> None:
        a, b = 3 + drawn(9), 2 + 0.3 * drawn(9, 1)
        assert Ratio(a, b, "a").p_above(1.2) == pytest.approx(Mean(a - 1.2 * b, "a").p_above(0.0))

    def test_zeros_and_infinite_values(self) -> None:
        assert Ratio(np.zeros(8), 1 + 0.1 * drawn(8), "a").value == 0.0
        found = Ratio(np.array([1.0, 2.0, INF, 3.0]), np.ones(4), "a")
        assert found.interval() == (-INF, INF)
        assert found.p_above(0.0) == 1.0


@pytest.mark.slow
def test_a_mean_of_many_is_normal() -> None:
    found = Mean(drawn(3_000), "a")
    low, high = found.interval()
    assert_allclose((high - low) / 2, norm.ppf(1 - TAIL) / np.sqrt(3_000), rtol=0.1)
