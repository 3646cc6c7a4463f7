import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from plumbline.forecasts.calibration_score import LEVELS, calibration_score, empirical_level

pits = arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1))


def literal_score(pit: list[float], levels: list[float]) -> float:
    """CAL, section 5.1, as it is written."""
    total = 0.0
    for p in levels:
        below = 0
        for value in pit:
            if value <= p:
                below += 1
        total += (p - below / len(pit)) ** 2
    return total


@given(pits)
def test_score_is_the_papers_sum(pit: np.ndarray) -> None:
    assert calibration_score(pit) == pytest.approx(literal_score(list(pit), list(LEVELS)), abs=1e-12)


@given(pits, arrays(np.float64, st.integers(1, 9), elements=st.floats(0, 1)))
def test_score_at_any_levels(pit: np.ndarray, levels: np.ndarray) -> None:
    assert calibration_score(pit, levels) == pytest.approx(literal_score(list(pit), list(levels)), abs=1e-12)


@given(pits, st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(pit: np.ndarray, random) -> None:
    shuffled = list(pit)
    random.shuffle(shuffled)
    assert calibration_score(shuffled) == calibration_score(pit)
    assert calibration_score(np.tile(pit, 3)) == pytest.approx(calibration_score(pit), abs=1e-12)


@given(pits)
def test_score_is_between_perfect_and_worst(pit: np.ndarray) -> None:
    worst = max(np.sum(LEVELS**2), np.sum((1 - LEVELS) ** 2), np.sum(np.maximum(LEVELS, 1 - LEVELS) ** 2))
    assert 0 <= calibration_score(pit) <= worst + 1e-12


@given(pits)
def test_empirical_level_is_a_distribution_function(pit: np.ndarray) -> None:
    p = np.linspace(0, 1, 33)
    shares = empirical_level(pit, p)
    assert (np.diff(shares) >= 0).all()
    assert shares[-1] == 1.0
    assert shares[0] == np.mean(pit == 0)


def test_perfectly_uniform_values_score_nearly_nothing() -> None:
    uniform = (np.arange(1000) + 0.5) / 1000
    assert calibration_score(uniform) < 19 * 1e-6


def test_overconfident_forecasts_score_worse() -> None:
    uniform = (np.arange(1000) + 0.5) / 1000
    extreme = np.where(uniform < 0.5, uniform / 5, 1 - (1 - uniform) / 5)
    assert calibration_score(extreme) > 0.5


def test_levels_are_those_documented() -> None:
    assert LEVELS.tolist() == pytest.approx([0.05 * i for i in range(1, 20)])
