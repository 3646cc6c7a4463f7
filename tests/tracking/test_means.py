"""Mean curves, against means that are taken one number at a time."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from plumbline.tracking.means import mean_curves

NUMBERS = st.floats(-100, 100, width=32) | st.just(math.nan)


@settings(max_examples=30)
@given(st.integers(1, 5), st.integers(1, 6), st.data())
@pytest.mark.parametrize(("name", "running"), [("best_f", True), ("nll", False), ("round_seconds", False)])
def test_means_and_intervals(name: str, running: bool, seeds: int, rounds: int, data: st.DataObject) -> None:
    values = data.draw(arrays(np.float64, (seeds, rounds), elements=NUMBERS))
    table = pd.DataFrame(values, index=[3 * seed for seed in range(seeds)])
    found = mean_curves({name: table, "other": table}, [name, "regret"])
    assert set(found) == {name}
    for i in range(rounds):
        there = []
        for row in values:
            known = [value for value in (row[: i + 1] if running else row[i : i + 1]) if not math.isnan(value)]
            there += known[-1:]
        if not there:
            assert i not in found[name].index
            continue
        low, mean, high = found[name].loc[i]
        assert mean == pytest.approx(sum(there) / len(there))
        if len(there) == 1:
            assert math.isnan(low)
            assert math.isnan(high)
            continue
        error = np.std(there, ddof=1) / math.sqrt(len(there))
        reach = error * scipy.stats.t.ppf(0.975, len(there) - 1)
        assert (low, high) == pytest.approx((mean - reach, mean + reach), abs=1e-9)
