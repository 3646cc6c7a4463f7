import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.units import LEAST, MOST, usual_unit


@given(size=st.floats(1e-140, 1e140))
def test_sizes_in_their_unit_are_usual(size: float) -> None:
    unit = float(usual_unit(size))
    assert LEAST <= size / unit <= MOST
    assert np.frexp(unit)[0] == 0.5, "a power of two"
    if not LEAST <= size <= MOST:
        assert 0.7 < size / unit < 1.42


@given(size=st.floats(LEAST, MOST))
def test_usual_sizes_have_the_unit_one(size: float) -> None:
    assert usual_unit(size) == 1.0


@pytest.mark.filterwarnings("error")
def test_each_size_has_its_own() -> None:
    assert usual_unit([0.0, 2.0**-20, 1.0, 3 * 2.0**30]).tolist() == [1.0, 2.0**-20, 1.0, 2.0**32]


@pytest.mark.filterwarnings("error")
@given(size=st.floats())
def test_whatever_the_size_the_unit_and_its_inverse_are_numbers(size: float) -> None:
    unit = float(usual_unit(size))
    assert 0 < unit < np.inf
    assert 0 < 1 / unit < np.inf
