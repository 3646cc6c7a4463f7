"""Theorems 1 and 2 of Srinivas et al. (2010), against their formulas in numbers worked out by hand."""

import math

import pytest

from plumbline.acquisition.confidence_schedule import ConfidenceSchedule


def test_a_finite_set_has_theorem_1() -> None:
    # 2 log(100 * 9 * pi^2 / (6 * 0.1))
    assert ConfidenceSchedule().sqrt_beta(3, 2, 100) ** 2 == pytest.approx(2 * math.log(900 * math.pi**2 / 0.6))


def test_a_box_has_theorem_2() -> None:
    # d = 2, t = 3, delta = .1, a = b = 1: log(4 d a / delta) = log 80.
    expected = 2 * math.log(9 * 2 * math.pi**2 / 0.3) + 4 * math.log(9 * 2 * math.sqrt(math.log(80)))
    assert ConfidenceSchedule().sqrt_beta(3, 2) ** 2 == pytest.approx(expected)


def test_it_grows_with_rounds_dimensions_points_and_certainty() -> None:
    schedule = ConfidenceSchedule()
    assert schedule.sqrt_beta(2, 2) > schedule.sqrt_beta(1, 2)
    assert schedule.sqrt_beta(2, 3) > schedule.sqrt_beta(2, 2)
    assert schedule.sqrt_beta(2, 2, 200) > schedule.sqrt_beta(2, 2, 100)
    assert ConfidenceSchedule(delta=0.01).sqrt_beta(2, 2) > schedule.sqrt_beta(2, 2)


def test_it_is_a_number_at_any_constants() -> None:
    small = ConfidenceSchedule(delta=0.99, a=1e-9, b=1e-9)
    assert small.sqrt_beta(1, 1) >= 0.0
    assert small.sqrt_beta(1, 1, 1) >= 0.0
