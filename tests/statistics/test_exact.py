"""Medians and shares: by hand, and at the edges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

from plumbline.statistics.exact import ConsistentWins, Median, Share
from plumbline.statistics.inference import TAIL

INF = np.inf


def drawn(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


class TestMedian:
    def test_by_hand(self) -> None:
        """Of ten values, the second to the ninth: 1 - 2 * 11 / 1024."""
        found = Median(np.arange(10.0))
        assert found.value == 4.5
        assert found.interval() == (1.0, 8.0)
        assert found.p_above(0.5) == pytest.approx(11 / 1024)
        assert found.p_below(8.5) == pytest.approx(11 / 1024)

    @pytest.mark.parametrize("n", range(1, 6))
    def test_fewer_than_six_values_show_nothing(self, n: int) -> None:
        found = Median(drawn(n))
        assert found.interval() == (-INF, INF)
        assert found.p_above(-1e9) == pytest.approx(0.5**n)

    def test_values_at_the_threshold_speak_for_neither_side(self) -> None:
        found = Median(np.zeros(12))
        assert found.p_above(0.0) == found.p_below(0.0) == 1.0
        assert found.interval() == (0.0, 0.0)

    def test_infinite_values_are_values(self) -> None:
        found = Median(np.array([1.0, 2.0, 3.0, 4.0, 5.0, INF, INF]))
        assert found.value == 4.0
        assert found.p_above(0.0) == pytest.approx(0.5**7)


class TestShare:
    def test_by_hand(self) -> None:
        """Clopper and Pearson's interval of 0 of n ends at 1 - .025^(1/n)."""
        found = Share(np.zeros(10))
        assert found.value == 0.0
        assert_allclose(found.interval(), (0.0, 1 - TAIL ** (1 / 10)))
        assert found.p_below(0.5) == pytest.approx(0.5**10)
        assert found.p_above(0.0) == 1.0

    def test_a_tie_is_rounded_against_whoever_asks(self) -> None:
        found = Share(np.array([1.0] * 8 + [0.5]))
        assert found.value == 8.5 / 9
        assert found.p_above(0.5) == pytest.approx(binom.sf(7, 9, 0.5))
        assert found.p_below(0.5) == 1.0

    def test_what_is_detectable(self) -> None:
        """Of 16 seeds 13 must win, which four times in five they do where the probability is .86."""
        found = Share(np.ones(16))
        assert binom.sf(12, 16, 0.5) <= TAIL < binom.sf(11, 16, 0.5)
        assert binom.sf(12, 16, 0.5 + found.detectable) == pytest.approx(0.8)
        assert Share(np.ones(5)).detectable == INF

    def test_a_threshold_beyond_all_probabilities(self) -> None:
        assert Share(np.ones(9)).p_above(-1.0) == 0.0
        assert Share(np.zeros(9)).p_below(2.0) == 0.0


class TestConsistentWins:
    def test_by_hand(self) -> None:
        """The method is ahead in 3/4 and 1/2 of the seeds of two tasks."""
        found = ConsistentWins(np.array([[1, 1], [1, 0], [1, 0.5], [0, 0.5]]).T)
        assert found.value == 0.5

    def test_it_asks_the_same_of_both_methods(self) -> None:
        wins = (drawn(60).reshape(3, 20) > -0.5).astype(float)
        first, second = ConsistentWins(wins), ConsistentWins(1 - wins)
        assert first.value == second.value
        assert first.p_below(0.65) == second.p_below(0.65)
        assert first.p_above(0.65) == second.p_above(0.65)

    def test_a_winner_throughout(self) -> None:
        found = ConsistentWins(np.ones((3, 20)))
        assert found.value == 1.0
        assert found.p_above(0.65) == pytest.approx(2 * 0.65**20)
        assert found.p_below(0.65) == 1.0

    def test_each_task_has_seeds_of_its_own(self) -> None:
        """Ten seeds of one task take nothing away from twenty of another."""
        found = ConsistentWins([np.ones(20), np.zeros(10)])
        assert found.value == 0.0
        assert found.p_below(0.65) == pytest.approx(2 * max(2 * 0.35**10, 2 * 0.35**20))

    def test_winners_that_change(self) -> None:
        wins = np.tile([1.0, 0.0, 1.0], (20, 1)).T
        found = ConsistentWins(wins)
        assert found.value == 0.0
        assert found.p_below(0.65) == pytest.approx(2 * 3 * 0.35**20)

    def test_at_the_boundary_it_errs_less_often_than_it_says(self) -> None:
        """One method ahead with .65 on each of four tasks, the claim's boundary: it must seldom be called absent."""
        rng = np.random.default_rng(0)
        rejected = [
            ConsistentWins((rng.random((4, 20)) < 0.65).astype(float)).p_below(0.65) <= TAIL for _ in range(400)
        ]
        assert np.mean(rejected) <= TAIL + 3 * np.sqrt(TAIL / 400)
