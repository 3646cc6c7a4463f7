"""Numbers on a screen."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.analysis.comparisons.numbers import (
    NO_INTERVAL,
    ends_in_words,
    interval,
    intervals_in_words,
    is_open,
    probability,
    short,
    significant,
)


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


END = st.floats(-1e6, 1e6) | st.sampled_from([inf, -inf])


@given(st.lists(st.tuples(END, END).map(lambda ends: tuple(sorted(ends)))))
def test_the_legend_explains_an_open_interval_where_there_is_one(ends: list[tuple[float, float]]) -> None:
    shown = [interval(*one) for one in ends]
    assert ("[–]: " in intervals_in_words(ends)) == ("[–]" in shown)


@given(END, END)
def test_no_end_in_words_is_infinite(low: float, high: float) -> None:
    words = ends_in_words(low, high)
    assert "inf" not in words
    assert (" to " in words) != is_open(low, high)


def test_ends_in_words() -> None:
    assert ends_in_words(-inf, inf) == ends_in_words(nan, nan) == NO_INTERVAL
    assert [ends_in_words(*ends) for ends in ((1, 2), (1, inf), (-inf, 2))] == ["1 to 2", "above 1", "below 2"]
