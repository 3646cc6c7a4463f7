"""What all inferences have in common."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

from plumbline.statistics.exact import ConsistentWins, Median, Share
from plumbline.statistics.inference import TAIL, Inference
from plumbline.statistics.means import Mean, Ratio

INF = np.inf


def drawn(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


EACH: dict[str, Callable[[int, int], Inference]] = {
    "mean": lambda n, seed: Mean(drawn(n, seed), "a"),
    "skewed mean": lambda n, seed: Mean(np.exp(drawn(n, seed)), "a"),
    "median": lambda n, seed: Median(drawn(n, seed)),
    "share": lambda n, seed: Share(drawn(n, seed) > 0.3),
    "ties": lambda n, seed: Share(np.clip(np.round(drawn(n, seed)), -1, 1) / 2 + 0.5),
    "ratio": lambda n, seed: Ratio(3 + drawn(n, seed), 2 + 0.5 * drawn(n, seed + 1), "a"),
    "consistent wins": lambda n, seed: ConsistentWins((drawn(3 * n, seed).reshape(3, n) > 0).astype(float)),
}
"""One of each kind, from a number of seeds and a seed."""


class TestEach:
    @pytest.mark.parametrize("name", EACH)
    @pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 16, 50])
    def test_it_has_an_interval_around_its_value(self, name: str, n: int) -> None:
        found = EACH[name](n, n)
        low, high = found.interval()
        assert low <= found.value <= high
        assert 0 <= found.p_above(found.value) <= 1
        assert 0 <= found.p_below(found.value) <= 1

    @pytest.mark.parametrize("name", EACH)
    @pytest.mark.parametrize("n", [4, 5, 16, 50])
    @pytest.mark.parametrize("seed", range(3))
    def test_the_interval_is_what_neither_side_rejects(self, name: str, n: int, seed: int) -> None:
        found = EACH[name](n, seed)
        low, high = found.interval()
        slack = 0.006 if name == "consistent wins" else 1e-5 * max(1.0, abs(found.value))
        if np.isfinite(low) and low > 0:
            assert found.p_above(low - slack) <= TAIL < found.p_above(low + slack)
        if np.isfinite(high) and (high < 1 or "share" not in name):
            assert found.p_below(high + slack) <= TAIL < found.p_below(high - slack)

    @pytest.mark.parametrize("name", EACH)
    @pytest.mark.parametrize("n", [3, 4, 10, 40])
    def test_probabilities_grow_towards_the_other_side(self, name: str, n: int) -> None:
        found = EACH[name](n, 7)
        thresholds = np.linspace(0.01, 0.99, 23) if name in ("share", "ties", "consistent wins") else (
            found.value + np.linspace(-1.0, 1.0, 23)
        )  # fmt: skip
        above = [found.p_above(x) for x in thresholds]
        below = [found.p_below(x) for x in thresholds]
        assert (np.diff(above) >= -1e-12).all()
        assert (np.diff(below) <= 1e-12).all()

    @pytest.mark.parametrize("name", EACH)
    def test_it_repeats_itself(self, name: str) -> None:
        assert EACH[name](9, 0).interval() == EACH[name](9, 0).interval()


def test_seeds_are_compared_with_thresholds_on_the_scale_of_the_test() -> None:
    assert_allclose(Mean(np.array([1.0, 2.0]), "a").beyond(1.5), [-0.5, 0.5])
    assert_allclose(Median(np.array([1.0, 2.0])).beyond(1.0), [0.0, 1.0])
    assert_allclose(Ratio(np.array([1.0, 3.0]), np.array([1.0, 1.0]), "a").beyond(2.0), [-1.0, 1.0])
    assert_allclose(Share(np.array([1.0, 0.0, 0.5])).beyond(0.9), [0.5, -0.5, 0.0])
    assert ConsistentWins(np.ones((2, 3))).beyond(0.5).size == 0
