"""Numbers on a screen."""

from math import inf, nan

import pytest

from plumbline.analysis.comparisons.numbers import interval, probability, short, significant


def test_what_is_not_there_is_a_dash() -> None:
    assert (short(0.12345), short(nan)) == ("0.123", "–")
    assert (interval(1.0, 2.0), interval(nan, nan)) == ("[1, 2]", "")
    assert (probability(0.5), probability(nan), probability(1e-4)) == (".5", "–", "<.001")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.012345, "0.01235"),
        (-0.0, "0"),
        (1234.5, "1234"),
        (176286.0, "176,300"),
        (-99999.0, "-100,000"),
        (2e7, "2e+07"),
    ],
)
def test_numbers_have_their_digits_before_the_point_and_zero_has_no_sign(value: float, text: str) -> None:
    assert significant(value, 4) == text


@pytest.mark.parametrize(("p", "least", "text"), [(0.042, 1e-3, ".042"), (1.0, 1e-3, "1"), (5e-5, 1e-4, "<.0001")])
def test_probabilities_are_as_papers_print_them(p: float, least: float, text: str) -> None:
    assert probability(p, least) == text


@pytest.mark.parametrize("ends", [(-inf, 1.0), (0.0, inf), (-inf, inf)])
def test_an_open_interval_has_no_numbers(ends: tuple[float, float]) -> None:
    assert interval(*ends) == "[–]"
