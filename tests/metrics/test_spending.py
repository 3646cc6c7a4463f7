"""Metrics against what was spent, against loops."""

import math

import made_evidence as made
import numpy as np
import pandas as pd
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.metrics.frames import frame_of
from plumbline.metrics.registry import by_round
from plumbline.metrics.spending import STEPS, by_cost, counts, spent

ROLES = ["objective", "at_least_zero"]


def trial(seed: int, asked: list[tuple[bool, bool]], values: list[float]) -> list[dict[str, object]]:
    """Return a trial of an objective and a constraint that always holds: which was asked for, and the objective."""
    rows = made.trial(seed=seed, rounds=len(asked) - made.INITIAL, optimum=1.0, model=False)
    for row, wanted, value in zip(rows, asked, values, strict=True):
        f = [value, 0.5]
        row |= {"f": f, "y": [v if w else math.nan for v, w in zip(f, wanted, strict=True)], "roles": ROLES}
    return rows


BOTH, FIRST, SECOND = (True, True), (True, False), (False, True)


@pytest.fixture
def rows() -> pd.DataFrame:
    """Two seeds: one asks for both outcomes, the other for one at a time."""
    one = trial(0, [BOTH, BOTH, BOTH, BOTH], [0.0, 0.1, 0.5, 0.6])
    other = trial(1, [BOTH, BOTH, FIRST, SECOND, FIRST, FIRST], [0.0, 0.2, 0.3, 0.4, 0.7, 0.9])
    return frame_of(made.table([*one, *other]))


def test_only_what_was_asked_for_is_counted(rows: pd.DataFrame) -> None:
    found = counts(rows)
    assert found.loc[0].to_numpy().tolist() == [[2, 2], [3, 3], [4, 4]]
    assert found.loc[1].to_numpy().tolist() == [[2, 2], [3, 2], [3, 3], [4, 3], [5, 3]]
    paid = spent(rows, (1.0, 10.0))
    np.testing.assert_array_equal(paid.loc[0], [22, 33, 44, np.nan, np.nan])
    np.testing.assert_array_equal(paid.loc[1], [22, 23, 33, 34, 35])


def test_a_metric_stands_as_the_last_round_left_it_that_was_affordable(rows: pd.DataFrame) -> None:
    found = by_cost(rows, "best_f", (1.0, 10.0))
    assert found.columns.tolist() == [22, 23, 33, 34, 35]
    np.testing.assert_allclose(found.loc[0], [0.1, 0.1, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(found.loc[1], [0.2, 0.3, 0.4, 0.7, 0.9])


def test_where_all_outcomes_are_asked_for_it_goes_by_rounds() -> None:
    rows = frame_of(made.table(trial(0, [BOTH] * 5, [0.0, 0.1, 0.5, 0.3, 0.6])))
    found, rounds = by_cost(rows, "best_f", (1.0, 2.0)), by_round(rows, "best_f")
    assert found.columns.tolist() == [6, 9, 12, 15]
    np.testing.assert_array_equal(found, rounds)


def test_many_rounds_are_told_at_fewer_costs() -> None:
    n = 2 * STEPS
    found = by_cost(frame_of(made.table(trial(0, [BOTH] * n, [i / n for i in range(n)]))), "best_f", (1.0, 1.0))
    assert found.shape == (1, STEPS)
    assert (np.diff(found.to_numpy()) >= 0).all()


def test_costs_of_other_outcomes_are_refused(rows: pd.DataFrame) -> None:
    with pytest.raises(PlumblineError, match="3 costs of 2 outcomes: give one each"):
        spent(rows, (1.0, 1.0, 1.0))
