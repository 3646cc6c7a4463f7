import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.data.sources.images import Part, some_of_each


def part(labels: list[int]) -> Part:
    """Images whose first pixel is their number."""
    pixels = np.zeros((len(labels), 1, 2, 2), dtype=np.uint8)
    pixels[:, 0, 0, 0] = np.arange(len(labels))
    return Part(pixels, np.array(labels))


@given(labels=st.permutations([0] * 5 + [1] * 4 + [7] * 6), number=st.integers(1, 4), seed=st.integers(0, 5))
def test_as_many_of_each_class_are_kept_in_their_order(labels: list[int], number: int, seed: int) -> None:
    kept = some_of_each(part(labels), number, np.random.default_rng(seed))
    rows = kept.pixels[:, 0, 0, 0]
    assert (np.diff(rows) > 0).all()
    assert np.array_equal(kept.labels, np.array(labels)[rows])
    assert np.unique(kept.labels, return_counts=True)[1].tolist() == [number] * 3


def test_they_are_drawn() -> None:
    one, other = (some_of_each(part([0] * 50), 10, np.random.default_rng(seed)).pixels for seed in (0, 1))
    assert not np.array_equal(one, other)


def test_a_class_that_has_fewer_is_said() -> None:
    with pytest.raises(PlumblineError, match="4 images of each class: one has 3 only, lower `a_class`"):
        some_of_each(part([0] * 5 + [1] * 3), 4, np.random.default_rng(0))
