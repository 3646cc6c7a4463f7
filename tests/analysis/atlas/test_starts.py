"""Trials of a seed have one initial design, or are told apart."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.analysis.atlas.starts import Apart, first_apart

FINITE = st.floats(-1e6, 1e6)


def rounds(starts: dict[tuple[str, int], float]) -> pd.DataFrame:
    """Return two rounds of each method and seed, the later of which is another method's business."""
    rows = [(method, seed, 0, best) for (method, seed), best in starts.items()]
    rows += [(method, seed, 1, index + best) for index, ((method, seed), best) in enumerate(starts.items())]
    return pd.DataFrame(rows, columns=["method", "seed", "round", "best"])


@pytest.mark.slow
@given(st.lists(FINITE, min_size=1, max_size=4), st.integers(1, 4))
def test_one_design_a_seed(bests: list[float], methods: int) -> None:
    starts = {(f"m{i}", seed): best for seed, best in enumerate(bests) for i in range(methods)}
    assert first_apart(rounds(starts)) is None
    rounding = {key: best * (1 + 1e-9 * i) for i, (key, best) in enumerate(starts.items())}
    assert first_apart(rounds(rounding)) is None


@given(st.lists(FINITE, min_size=1, max_size=4), st.data())
def test_another_design_is_named(bests: list[float], data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, len(bests) - 1))
    starts = {(f"m{i}", one): best for one, best in enumerate(bests) for i in range(3)}
    other = bests[seed] + data.draw(st.sampled_from([-1, 1])) * (1e-3 + abs(bests[seed]) * 1e-3)
    starts["m2", seed] = other
    assert first_apart(rounds(starts)) == Apart(seed, "m0", bests[seed], "m2", other)


def test_an_unknown_value_is_one_everywhere_or_apart() -> None:
    assert first_apart(rounds({("a", 0): np.nan, ("b", 0): np.nan})) is None
    assert first_apart(rounds({("a", 0): 1.0, ("b", 0): np.nan})) is not None
    assert first_apart(rounds({})) is None
