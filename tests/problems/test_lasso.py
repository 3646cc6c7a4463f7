import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from plumbline.core.errors import PlumblineError
from plumbline.data.generated.dna import generated_dna
from plumbline.data.sources import dna
from plumbline.data.sources.dna import read_dna
from plumbline.problems import lasso
from plumbline.problems.base import Context
from plumbline.problems.build import build_problem
from plumbline.problems.lasso import (
    FOLDS,
    RANGE,
    Fold,
    WeightedLasso,
    descended,
    error_on_held,
    exchanged,
    make_fold,
    make_folds,
    weighted_lasso,
)

TABLE = generated_dna(300, 0)
DIGITS, LABELS = TABLE[list(dna.COLUMNS)].to_numpy(), TABLE[dna.LABEL].to_numpy()
MADE = WeightedLasso(DIGITS, LABELS)
FOLD = next(make_folds(DIGITS, LABELS))


@st.composite
def inputs(draw: st.DrawFn) -> np.ndarray:
    """Draw a point, a corner, or one within the box but for some coordinates."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    edge = draw(st.sampled_from([0.0, 0.5, 1.0]))
    x = rng.uniform(-1, 1, 180)
    return np.where(rng.uniform(size=180) < edge, np.sign(x), x)


def check_optimality(fold: Fold, w: np.ndarray, b: np.ndarray, slack: np.ndarray) -> None:
    """The gradient of the squares is w_j against a coefficient that is not zero, and at most that otherwise."""
    gradient = fold.X.T @ (fold.y - fold.X @ b) / len(fold.y)
    assert (np.abs(gradient) <= w + slack).all()
    used = b != 0
    assert (np.abs(gradient - np.sign(b) * w)[used] <= slack[used]).all()


@given(x=inputs())
@settings(max_examples=40)
def test_coefficients_satisfy_the_conditions_of_optimality(x: np.ndarray) -> None:
    w = MADE.penalties(x)
    check_optimality(FOLD, w, weighted_lasso(FOLD, w), 1e-8 * (1 + w))
    check_optimality(FOLD, w, descended(FOLD, w), 2e-3 * np.maximum(w, 1e-3))


@given(x=inputs())
@settings(max_examples=20)
def test_the_exchange_ends_where_the_descent_does(x: np.ndarray) -> None:
    w = MADE.penalties(x)
    exact, near = exchanged(FOLD, w), descended(FOLD, w)
    assert exact is not None
    errors = [float(np.mean((FOLD.y_held - FOLD.X_held @ b) ** 2)) for b in (exact, near)]
    assert errors[0] == pytest.approx(errors[1], abs=5e-6), "held-out error of a single fold"


@given(seed=st.integers(0, 10_000), n=st.integers(3, 12), twins=st.booleans())
@settings(max_examples=60)
def test_fewer_rows_than_columns_and_equal_columns_are_solved(seed: int, n: int, twins: bool) -> None:
    """By the descent where the equations of the exchange have no single solution."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 8)), rng.normal(size=n)
    if twins:
        X[:, 1] = X[:, 0]
    fold, w = make_fold(X, y, X, y), np.exp(rng.uniform(-5, 0, 8))
    exact = exchanged(fold, w)
    if exact is not None:
        check_optimality(fold, w, exact, 1e-8 * (1 + w))
    check_optimality(fold, w, weighted_lasso(fold, w), np.full(8, 3e-2))


def test_what_the_exchange_does_not_finish_the_descent_does(monkeypatch: pytest.MonkeyPatch) -> None:
    w = MADE.penalties(np.zeros(180))
    assert exchanged(FOLD, w, most=1) is None
    monkeypatch.setattr(lasso, "exchanged", lambda fold, w: None)
    np.testing.assert_array_equal(weighted_lasso(FOLD, w), descended(FOLD, w))


@pytest.mark.parametrize(("w", "share"), [(1e-6, 1.0), (0.5, 0.75), (3.0, 0.0)])
def test_one_column_is_shrunk_by_its_penalty(w: float, share: float) -> None:
    X, y = np.array([[1.0], [-1.0], [1.0], [1.0]]), np.array([2.0, -2.0, 2.0, 2.0])
    fold = make_fold(X, y, X, y)
    found = weighted_lasso(fold, np.array([w]))
    np.testing.assert_allclose(found, [2 * share], atol=1e-5)
    assert error_on_held(fold, np.array([w])) == pytest.approx((2 - 2 * share) ** 2, abs=1e-4)


def test_penalties_span_five_decades_below_the_greatest() -> None:
    ends = MADE.penalties(np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_allclose(ends, MADE.alpha_max * np.array([1 / RANGE, 1 / math.sqrt(RANGE), 1.0]), rtol=1e-12)
    assert 0.1 < MADE.alpha_max < 10


def test_every_row_is_held_back_once() -> None:
    folds = list(make_folds(np.arange(24.0)[:, None], np.arange(24.0)))
    assert len(folds) == FOLDS
    assert sorted(np.concatenate([fold.y_held for fold in folds])) == list(range(24))
    for fold in folds:
        assert set(fold.y) | set(fold.y_held) == set(range(24))
        assert not set(fold.y) & set(fold.y_held)


def test_with_the_greatest_penalties_hardly_anything_is_explained() -> None:
    value = MADE(torch.ones(1, 180, dtype=torch.float64), noise=False).item()
    assert -value == pytest.approx(np.mean(LABELS**2), rel=0.15)
    assert MADE(torch.zeros(1, 180, dtype=torch.float64), noise=False).item() > value / 4


def test_what_has_not_converged_is_an_error() -> None:
    w = MADE.penalties(np.full(180, -0.5))
    with (
        pytest.warns(ConvergenceWarning),
        pytest.raises(PlumblineError, match="not converged in 3 sweeps: penalties") as caught,
    ):
        descended(FOLD, w, most_sweeps=3)
    assert "\n" not in str(caught.value)


def test_labels_that_no_column_has_to_do_with_are_refused() -> None:
    with pytest.raises(PlumblineError, match="no scale of penalties"):
        WeightedLasso(np.zeros((40, 3)), np.arange(40.0))


def test_a_column_of_zeros_has_no_coefficient() -> None:
    X = DIGITS.copy()
    X[:, 7] = 0
    b = weighted_lasso(next(make_folds(X, LABELS)), MADE.penalties(np.full(180, -1.0)))
    assert b[7] == 0
    assert np.isfinite(b).all()


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(PlumblineError, match="9 rows cannot be split into 5 folds"):
        WeightedLasso(DIGITS[:9], LABELS[:9])


def test_another_kind_of_table_is_refused(context: Callable[[int], Context]) -> None:
    with pytest.raises(PlumblineError, match="'small-molecules' has no column x1: it is for another problem"):
        build_problem("lasso-dna", {"dataset": "small-molecules"}, context(0))


class TestRealData:
    """LIBSVM's dna, against values of LassoBench, whose solver stops at 1e-4."""

    @pytest.fixture(scope="class")
    def real(self) -> WeightedLasso:
        path = Path(os.environ.get("PLUMBLINE_MIRROR", "/nowhere")) / "dna.scale"
        if not path.is_file():
            pytest.skip("needs PLUMBLINE_MIRROR with dna.scale")
        table = read_dna(path)
        return WeightedLasso(table[list(dna.COLUMNS)].to_numpy(), table[dna.LABEL].to_numpy())

    def test_the_greatest_penalty(self, real: WeightedLasso) -> None:
        assert real.alpha_max == pytest.approx(1.1052941176470588, rel=1e-12)

    @settings(max_examples=5)
    @given(x=inputs())
    def test_values_of_exchange_and_descent(self, real: WeightedLasso, x: np.ndarray) -> None:
        w = real.penalties(x)
        exact = np.mean([error_on_held(fold, w) for fold in real._folds])
        near = np.mean([np.mean((fold.y_held - fold.X_held @ descended(fold, w)) ** 2) for fold in real._folds])
        assert exact == pytest.approx(near, abs=1e-6)

    @pytest.mark.parametrize(
        ("x", "error"),
        [
            (np.zeros(180), 0.30465),
            (np.full(180, -1.0), 0.31028),
            (np.full(180, 1.0), 5.98070),
            (np.full(180, 0.5), 0.46488),
            (np.full(180, 0.25), 0.33701),
            (np.random.RandomState(0).uniform(-1, 1, 180), 0.38170),
        ],
    )
    def test_values(self, real: WeightedLasso, x: np.ndarray, error: float) -> None:
        assert -real(torch.from_numpy(x), noise=False).item() == pytest.approx(error, abs=3e-4)
