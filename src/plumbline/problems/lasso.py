r"""The penalties of a weighted Lasso, one per column, scored by cross-validation; LassoBench (Sehic et al., 2022).

With `n` rows of a table, labels `y` as numbers, and no intercept, the coefficients of a fold are

.. math:: b(w) = \arg\min_b \frac{1}{2 n} \lVert y - X b \rVert^2 + \sum_j w_j |b_j|,

and the objective is minus the mean over five folds of the squared error on the held-out rows.
The penalties are `w_j = alpha_min^((1 - x_j) / 2) alpha_max^((1 + x_j) / 2)` for `x` in [-1, 1]^d. If all are
`alpha_max`, all coefficients fitted to all rows are zero; `alpha_min` is `alpha_max` divided by 100,000.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from botorch.test_functions import SyntheticTestFunction
from numpy.typing import NDArray
from sklearn.linear_model import lasso_path
from sklearn.model_selection import KFold, train_test_split
from torch import Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.inputs import Input
from plumbline.core.options import Options
from plumbline.data.features import read_features
from plumbline.data.sources import dna
from plumbline.problems.base import Context, problems

Array = NDArray[np.float64]

TESTED, FOLDS, SPLIT_SEED = 0.15, 5, 42
"""The share of rows reserved for a final test, the number of folds of the others, and the seed of both splits."""

RANGE = 1e5
"""Ratio of the greatest to the least penalty."""

MOST_EXCHANGES = 30
"""Greatest number of exchanges between coefficients that are zero and others; ten suffice in what we have seen."""

SLACK = 1e-9
"""Relative rounding up to which the conditions of optimality hold."""

TOLERANCE = 1e-6
"""Tolerance of the descent's duality gap, as a share of the sum of squared labels. LassoBench has 1e-4, which changes
values by about 1e-4; with this tolerance they are accurate to 1e-6."""

MOST_SWEEPS = 100_000
"""Greatest number of sweeps of coordinate descent. A few thousand suffice, also at the corners of the box."""


@dataclass(frozen=True)
class Fold:
    """A fold: training rows of a regression, and held-out rows for its error.

    Attributes:
        X: `n x d`, the training rows.
        y: `n`.
        gram: `d x d`, X'X.
        Xy: `d`, X'y.
        start: `d`, where both algorithms start: the least-norm coefficients without penalties.
        X_held: `m x d`, the held-out rows.
        y_held: `m`.
    """

    X: Array
    y: Array
    gram: Array
    Xy: Array
    start: Array
    X_held: Array
    y_held: Array


def make_fold(X: Array, y: Array, X_held: Array, y_held: Array) -> Fold:
    """Return a fold with the quantities that do not depend on the penalties."""
    start = np.asarray(np.linalg.lstsq(X, y, rcond=None)[0], dtype=np.float64)
    return Fold(X, y, X.T @ X, X.T @ y, start, X_held, y_held)


def make_folds(X: Array, y: Array) -> Iterator[Fold]:
    """Yield the folds of `X` (`n x d`) and `y` (`n`)."""
    for rows, held in KFold(FOLDS, shuffle=True, random_state=SPLIT_SEED).split(X):
        yield make_fold(X[rows], y[rows], X[held], y[held])


def weighted_lasso(fold: Fold, w: Array) -> Array:
    """Return the coefficients of a fold under penalties `w` (`d`, positive): `d`.

    They are exact, to rounding, where the exchange ends; else those of the descent. Both start at the same point in
    each call: from that of an earlier call the last digits would depend on the calls before.

    Raises:
        PlumblineError: neither has converged.
    """
    exact = exchanged(fold, w)
    return descended(fold, w) if exact is None else exact


def exchanged(fold: Fold, w: Array, most: int = MOST_EXCHANGES) -> Array | None:
    """Return the exact coefficients of a fold under penalties `w` (`d`): `d`; None where the exchange does not end.

    The primal-dual active set method: given the signs of the coefficients, those that are not zero solve linear
    equations. Coefficients whose sign the solution contradicts become zero, and those whose gradient exceeds its
    penalty get the gradient's sign, all at once, until the signs and the solution agree.
    """
    total = len(fold.y) * w
    signs = np.where(np.abs(fold.start) * fold.gram.diagonal() > total, np.sign(fold.start), 0.0)
    for _ in range(most):
        used = np.flatnonzero(signs)
        rows = fold.gram[used]
        try:
            solved = np.linalg.solve(rows[:, used], fold.Xy[used] - total[used] * signs[used])
        except np.linalg.LinAlgError:  # columns that are linearly dependent
            return None
        gradient = fold.Xy - solved @ rows
        contradicted = np.sign(solved) != signs[used]
        exceeds = (np.abs(gradient) > total * (1 + SLACK)) & (signs == 0)
        if not contradicted.any() and not exceeds.any():
            coefficients = np.zeros_like(w)
            coefficients[used] = solved
            solves = np.abs(gradient - total * signs)[used] <= SLACK * (total + np.abs(fold.Xy))[used]
            return coefficients if solves.all() else None
        signs[used[contradicted]] = 0.0
        signs[exceeds] = np.sign(gradient[exceeds])
    return None


def descended(fold: Fold, w: Array, most_sweeps: int = MOST_SWEEPS) -> Array:
    """Return the coefficients of a fold under penalties `w` (`d`) by coordinate descent on the Gram matrix: `d`.

    They are the coefficients of a Lasso with penalty 1 on columns divided by `w`, themselves divided by `w`.

    Raises:
        PlumblineError: the descent has not converged.
    """
    scaled = np.asfortranarray(fold.X / w)
    _, coefficients, _, sweeps = lasso_path(
        scaled,
        fold.y,
        alphas=[1.0],
        precompute=fold.gram / np.outer(w, w),
        Xy=fold.Xy / w,
        coef_init=fold.start * w,
        tol=TOLERANCE,
        max_iter=most_sweeps,
        return_n_iter=True,
    )
    if sweeps[0] >= most_sweeps:
        raise PlumblineError(
            f"a weighted Lasso has not converged in {most_sweeps} sweeps: penalties {w.min():.3g} to {w.max():.3g}"
        )
    return coefficients[:, 0] / w


def error_on_held(fold: Fold, w: Array) -> float:
    """Return the mean squared error on the held-out rows of a fold, under penalties `w` (`d`)."""
    return float(np.mean((fold.y_held - fold.X_held @ weighted_lasso(fold, w)) ** 2))


class WeightedLasso(SyntheticTestFunction):
    """Minus the cross-validated error of a weighted Lasso; to be maximised. The greatest value is unknown.

    Attributes:
        alpha_max: the greatest penalty.
    """

    _is_minimization_by_default = False

    def __init__(self, X: Array, y: Array) -> None:
        """Create the problem of a table.

        Args:
            X: `n x d`, rows for a final test included.
            y: `n`.

        Raises:
            PlumblineError: too few rows to split, or no column is correlated with the labels.
        """
        if len(X) < 2 * FOLDS:
            raise PlumblineError(f"a table of {len(X)} rows cannot be split into {FOLDS} folds and a test")
        X, _, y, _ = train_test_split(X, y, test_size=TESTED, random_state=SPLIT_SEED)
        self.dim = X.shape[1]
        self.continuous_inds = list(range(self.dim))
        self._bounds = [(-1.0, 1.0)] * self.dim
        super().__init__()
        self.alpha_max = float(np.abs(X.T @ y).max() / len(X))
        if not 0 < self.alpha_max < math.inf:
            raise PlumblineError(f"a weighted Lasso has no scale of penalties: the greatest would be {self.alpha_max}")
        self._folds = list(make_folds(X, y))

    def penalties(self, x: Array) -> Array:
        """Return the penalties at `x` (`d`): `d`."""
        return np.exp(math.log(self.alpha_max) - (1 - x) / 2 * math.log(RANGE))

    @property
    def optimizers(self) -> Tensor:
        """Raise NotImplementedError: the best penalties are unknown."""
        raise NotImplementedError("The best penalties of the Lasso are not known.")

    def _evaluate_true(self, X: Tensor) -> Tensor:
        rows = X.detach().reshape(-1, self.dim).double().cpu().numpy()
        penalties = [self.penalties(x) for x in rows]
        values = [-np.mean([error_on_held(fold, w) for fold in self._folds]) for w in penalties]
        return torch.tensor(values, dtype=torch.float64).reshape(X.shape[:-1]).to(X)


class LassoOptions(Options):
    """Options of `lasso-dna`.

    Attributes:
        dataset: data set whose table of features is read.
    """

    dataset: Annotated[str, Input("features/{}.parquet")] = "libsvm-dna"


@problems.register("lasso-dna", LassoOptions)
def lasso_dna(options: LassoOptions, context: Context) -> SyntheticTestFunction:
    """180-d, the penalties of a Lasso that classifies splice junctions of DNA (libsvm-dna).

    Raises:
        PlumblineError: the table is missing or damaged, or lacks a feature or the label.
    """
    table = read_features(context.data / "features" / f"{options.dataset}.parquet")
    lacking = [name for name in (*dna.COLUMNS, dna.LABEL) if name not in table]
    if lacking:
        raise PlumblineError(f"dataset {options.dataset!r} has no column {lacking[0]}: it is for another problem")
    return WeightedLasso(table[list(dna.COLUMNS)].to_numpy("float64"), table[dna.LABEL].to_numpy("float64"))
