"""Corrections for the number of tests."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.statistics.multiple_tests import holm


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_it_is_between_nothing_and_bonferroni(p: list[float]) -> None:
    corrected = holm(p)
    for one, many in zip(p, corrected, strict=True):
        assert one <= many <= min(1.0, len(p) * one) + 1e-12
    assert min(corrected) == pytest.approx(min(1.0, len(p) * min(p)))
    assert np.argsort(p, kind="stable").tolist() == sorted(range(len(p)), key=lambda i: (corrected[i], p[i], i))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.randoms())
def test_the_order_does_not_matter(p: list[float], random: Any) -> None:
    order = list(range(len(p)))
    random.shuffle(order)
    assert holm([p[i] for i in order]) == pytest.approx([holm(p)[i] for i in order])


def test_of_many_true_hypotheses_one_is_rejected_no_oftener_than_of_one() -> None:
    rng = np.random.default_rng(0)
    rejected = np.mean([min(holm(rng.random(8))) <= 0.05 for _ in range(4_000)])
    assert rejected == pytest.approx(0.05, abs=0.012)
