"""Bands hold their middles, and words say what they are."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from plumbline.analysis.evidence.bands import BandKind, band, in_words

VALUES = arrays(np.float64, st.tuples(st.integers(2, 9), st.integers(1, 5)), elements=st.floats(-1e3, 1e3))


@pytest.mark.parametrize("kind", get_args(BandKind))
@given(values=VALUES)
def test_every_band_holds_its_middle(kind: BandKind, values: np.ndarray) -> None:
    low, middle, high = band(values, kind, (0.1, 0.9))
    assert low.shape == middle.shape == high.shape == values.shape[1:]
    if kind == "median-interval" and len(values) < 6:
        assert np.isnan([low, high]).all(), "so few values have no interval"
        return
    assert (low <= middle + 1e-9).all()
    assert (middle <= high + 1e-9).all()


def test_quantiles_are_those_that_are_asked_for() -> None:
    low, middle, high = band(np.arange(11.0)[:, None], "quantiles", (0.1, 0.8))
    assert (low.item(), middle.item(), high.item()) == (1.0, 5.0, 8.0)


def test_one_standard_error() -> None:
    low, middle, high = band(np.array([[1.0], [3.0]]), "mean-error", (0.2, 0.8))
    assert (low.item(), middle.item(), high.item()) == pytest.approx((1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("quantiles", "median and 10% to 90% quantiles"),
        ("median-interval", "median and its 95% interval"),
        ("mean-error", "mean and one standard error"),
        ("mean-interval", "mean and its 70% interval"),
    ],
)
def test_words(kind: BandKind, words: str) -> None:
    assert in_words(kind, (0.1, 0.9)) == words
