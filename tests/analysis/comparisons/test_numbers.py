"""Numbers on a screen."""

from math import inf, nan

import pytest

from plumbline.analysis.comparisons.numbers import interval, probability, short


def test_what_is_not_there_is_a_dash() -> None:
    assert (short(0.12345), short(nan)) == ("0.123", "–")
    assert (interval(1.0, 2.0), interval(nan, nan)) == ("[1, 2]", "")
    assert (probability(0.5), probability(nan), probability(1e-4)) == ("0.5", "–", "<.001")


@pytest.mark.parametrize("ends", [(-inf, 1.0), (0.0, inf), (-inf, inf)])
def test_an_open_interval_has_no_numbers(ends: tuple[float, float]) -> None:
    assert interval(*ends) == "[–]"
