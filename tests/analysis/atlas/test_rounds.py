"""What is kept of a cell: values so far, forecasts at their levels, digits."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as arrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.analysis.atlas.rounds import COLUMNS, RECORDED, at_level, measure_of, rounded, rounds_of
from plumbline.metrics.frames import frame_of

ALPHAS = [0.5, 0.2, 0.05]


def records(f: list[list[float]], y: list[list[float]], roles: list[str], **columns: Any) -> pd.DataFrame:
    """Return records of one seed whose first two evaluations are the initial design."""
    n = len(f)
    table = {
        "seed": [0] * n,
        "iteration": [0, 0, *range(1, n - 1)],
        "f": f,
        "y": y,
        "roles": [roles] * n,
        "optimum": [10.0] * n,
        "ref_point": [[0.0] * len(f[0])] * n,
        "alpha": [None, None] + [ALPHAS] * (n - 2),
        "covered": [None, None] + [[0.0, 1.0, 1.0]] * (n - 2),
        "width": [None, None] + [[1.0, 2.0, 3.0]] * (n - 2),
        "pit": [None] * 2 + [0.12345] * (n - 2),
        "nll": [None] * 2 + [-1.0] * (n - 2),
        "notes": [[]] * (n - 1) + [[("recommended_f", 7.5)]],
        **{name: [0.25] * n for name in ("fit_seconds", "acquire_seconds", "evaluate_seconds")},
        **columns,
    }
    types = {"notes": arrow.map_(arrow.string(), arrow.float64())}
    lists = ("f", "y", "alpha", "covered", "width", "ref_point")
    types |= {name: arrow.list_(arrow.float64()) for name in lists}
    return frame_of(arrow.table({name: arrow.array(values, types.get(name)) for name, values in table.items()}))


def test_of_one_objective() -> None:
    """The best query is not the best observation; the recommendation stands in the last round."""
    rows = records([[1.0], [3.0], [2.0], [5.0]], [[4.0], [2.0], [6.0], [5.0]], ["objective"])
    found = rounds_of(rows)
    assert list(found) == list(COLUMNS)
    assert found["round"].tolist() == [0, 1, 2]
    assert found["best"].tolist() == [3.0, 3.0, 5.0]
    assert found["incumbent"].tolist() == [1.0, 2.0, 2.0]
    assert found["recommended"].tolist()[:2] == [pytest.approx(np.nan, nan_ok=True)] * 2
    assert found["recommended"].iloc[2] == 7.5
    assert found["covered_50"].tolist()[1:] == [0.0, 0.0]
    assert found["covered_80"].tolist()[1:] == [1.0, 1.0]
    assert (
        found.loc[1:, ["pit", "nll", "width_80", "fit_seconds"]].to_numpy().tolist() == [[0.123, -1.0, 2.0, 0.25]] * 2
    )
    assert found.loc[0, ["covered_50", "pit", "fit_seconds"]].isna().all()
    assert found["optimum"].tolist() == [10.0] * 3


def test_with_constraints_the_best_is_minus_a_distance() -> None:
    """A violation counts like a distance from the optimum; a value beyond the optimum does not pay for it."""
    roles = ["objective", "at_least_zero"]
    rows = records([[4.0, 1.0], [12.0, -5.0], [7.0, 1.0]], [[4.0, 1.0], [12.0, -5.0], [7.0, 1.0]], roles)
    found = rounds_of(rows)
    assert found["best"].tolist() == [-5.0, -3.0]
    assert found["incumbent"].tolist() == [-6.0, -3.0]
    assert found["optimum"].tolist() == [0.0] * 2


def test_of_several_objectives_it_is_a_hypervolume() -> None:
    values = [[1.0, 1.0], [2.0, 0.5], [2.0, 2.0]]
    rows = records(values, values, ["objective", "objective"])
    found = rounds_of(rows)
    assert found["best"].tolist() == [1.5, 4.0]
    assert found["incumbent"].isna().all()
    assert found["optimum"].isna().all()


def test_a_method_without_forecasts_has_none() -> None:
    nothing: Any = [None] * 3
    rows = records([[1.0]] * 3, [[1.0]] * 3, ["objective"], alpha=nothing, covered=nothing, width=nothing, pit=nothing)
    assert rounds_of(rows)[["covered_50", "covered_80", "covered_95", "pit", "width_80"]].isna().all(axis=None)


def test_a_level_that_was_not_recorded() -> None:
    alphas, values = np.array([[0.5, 0.1], [0.2, 0.1]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(at_level(alphas, values, 0.2), [np.nan, 1.0])
    assert np.isnan(at_level(np.full((2, 1), np.nan), values, 0.2)).all()


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=1))
def test_digits(numbers: list[float]) -> None:
    """Three digits, of numbers of any size; zeros, infinities and what is missing stay."""
    found = rounded(pd.Series(numbers, dtype=float))
    for one, kept in zip(numbers, found, strict=True):
        assert kept == pytest.approx(one, rel=5.01e-3, abs=0, nan_ok=True)
        if np.isfinite(one):
            assert kept == float(f"{one:.2e}") or abs(kept - one) <= 0.5000001 * 10 ** (
                np.floor(np.log10(abs(one))) - 2
            )


def test_measures() -> None:
    assert measure_of(["objective"]) == "value"
    assert measure_of(["objective", "zero"]) == "penalised"
    assert measure_of(["objective", "objective"]) == "hypervolume"
    assert {"f", "y", "optimum", "notes"} <= set(RECORDED)
