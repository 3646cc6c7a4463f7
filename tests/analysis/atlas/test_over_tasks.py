"""Intervals over tasks cover the mean over tasks as often as they say."""

import numpy as np
import pandas as pd
import pytest

from plumbline.analysis.atlas.over_tasks import RESAMPLES, drawn_tasks, mean_over_tasks


def test_each_resample_has_as_many_tasks() -> None:
    drawn = drawn_tasks(7)
    assert drawn.shape == (RESAMPLES, 7)
    assert (drawn.sum(axis=1) == 7).all()


def test_it_is_the_percentile_bootstrap_task_by_task() -> None:
    rng = np.random.default_rng(0)
    values = pd.DataFrame(rng.random((3, 6)), index=["a", "b", "c"])
    found = mean_over_tasks(values)
    resampled = np.array(
        [[np.repeat(row, times.astype(int)).mean() for times in drawn_tasks(6)] for row in values.to_numpy()]
    )
    low, high = np.quantile(resampled, [0.025, 0.975], axis=1, method="inverted_cdf")
    assert found["low"].tolist() == pytest.approx(low.tolist())
    assert found["high"].tolist() == pytest.approx(high.tolist())
    assert found["mean"].tolist() == pytest.approx(values.mean(axis=1).tolist())


def test_a_row_has_its_own_tasks() -> None:
    values = pd.DataFrame([[1.0, 1.0, np.nan], [np.nan, np.nan, 5.0]])
    found = mean_over_tasks(values)
    assert found.loc[0, ["tasks", "mean", "low", "high"]].tolist() == [2, 1, 1, 1]
    assert found.loc[1, ["tasks", "mean"]].tolist() == [1, 5]
    assert found.loc[1, ["low", "high"]].isna().all()


def test_intervals_cover_nearly_as_often_as_they_say() -> None:
    """Percentiles are somewhat too short for few tasks: 93% of 95% with twenty."""
    values = pd.DataFrame(np.random.default_rng(1).exponential(size=(4000, 20)))
    found = mean_over_tasks(values)
    assert 0.89 < ((found["low"] <= 1) & (found["high"] >= 1)).mean() < 0.96
