"""The marginal likelihood of GPs with its gradient, for several data sets at once.

docs/methods/gp.md derives the formulas. Products, factors and sums are taken data set by data set, so that the numbers
of one do not depend on its company, to the last bit. LAPACK works in place, and the rest on blocks of upper triangles
that fit into the processor's cache: passes over whole matrices would take as long as their factors.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import torch
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NanError, NotPSDError
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from torch import Tensor

from plumbline.models.algebra import CORRELATIONS, Kernel
from plumbline.models.gp.priors import Array

LOG_2PI = math.log(2 * math.pi)

BLOCK = 2**14
"""Greatest number of elements of a block: passes over larger ones wait for memory."""


class Hyperparameters(NamedTuple):
    """Hyperparameters of a GP with a constant mean, in standardised units.

    Attributes:
        constant: the prior mean.
        noise: noise variance of each observation, `n`, or of all, `1`.
        outputscale: prior variance of f.
        lengthscale: lengthscales, `d`, or one for all inputs, `1`.
    """

    constant: float
    noise: Tensor
    outputscale: float
    lengthscale: Tensor


_NONE = torch.empty(0, dtype=torch.float64)

NOTHING_KNOWN = Hyperparameters(math.nan, _NONE, 1.0, _NONE)
"""Known hyperparameters where only the outputscale, one, is known."""


class Covariances(NamedTuple):
    """Positive hyperparameters of m covariance matrices, or derivatives in them.

    Attributes:
        noise: `m x n`, or `m x 1` where it is the same for all observations.
        outputscale: `m x 1`.
        lengthscale: `m x d`, or `m x 1`.
    """

    noise: Array
    outputscale: Array
    lengthscale: Array


@dataclass(frozen=True)
class DataSets:
    """m data sets of n points whose likelihoods are evaluated at many hyperparameters.

    Attributes:
        X: `m x n x d`.
        y: `m x n`.
        constant: prior mean of each data set; None where it is fitted.
    """

    X: Array
    y: Array
    constant: float | None = None

    @cached_property
    def centred(self) -> tuple[Array, Array]:
        """The points minus their mean, which avoids cancellation, and the squares of their coordinates."""
        X = self.X - self.X.mean(-2, keepdims=True)
        return X, np.square(X)

    @cached_property
    def right(self) -> Array:
        """Right-hand sides `y` and 1 of the linear systems, `m x 2 x n`."""
        return np.stack([self.y, np.ones_like(self.y)], -2)

    @cached_property
    def workspace(self) -> tuple[Array, list["Block"]]:
        """Memory for covariances, `m x n x n`, and their blocks: a system call an evaluation would take as long."""
        m, n = self.y.shape
        return np.empty((m, n, n)), [Block.empty(m, rows, columns) for rows, columns in _places(n)]

    def only(self, rows: Sequence[int]) -> "DataSets":
        """Return the data sets with numbers `rows`, which may repeat."""
        whole = list(rows) == list(range(len(self.y)))
        return self if whole else DataSets(self.X[rows], self.y[rows], self.constant)

    def log_likelihoods(self, at: Covariances, kernel: Kernel) -> tuple[Array, Array, Covariances]:
        """Return `log N(y; constant, A)` of each data set, the prior means, and the gradients in the hyperparameters.

        Here `A = outputscale K + diag(noise)`; Rasmussen & Williams (2006), eq. 5.8 and 5.9. A fitted prior mean is
        the best one at these hyperparameters, `1' A^-1 y / 1' A^-1 1`, where the likelihood has no slope in it.

        With `a = A^-1 (y - constant)` and `G = (a a' - A^-1) / 2` the derivative in A is G. The derivative in a
        lengthscale is `sum_ik P_ik (x_ij - x_kj)^2 / l_j^3` with `P = outputscale G * -2 dk/dr^2`. Expanded
        squares need two matrix products in place of n^2 d differences. Since all sums are of products with symmetric
        matrices, only upper triangles are summed: elements off the diagonal count twice.

        A covariance without a Cholesky factor gets jitter. Value and gradient are NaN where that fails too.

        Args:
            at: the hyperparameters of m data sets.
            kernel: kernel of unit variance.

        Returns:
            `m`, `m`, and derivatives in the shapes of `at`.
        """
        (X, squares), y = self.centred, self.y
        covariance, blocks = self._covariances(at, kernel)
        inverse, solutions, log_determinants = self._factorised(covariance, at, kernel)
        constant = self._constants(solutions)
        a = solutions[:, 0] - constant[:, None] * solutions[:, 1]
        misfit = np.vecdot(y - constant[:, None], a)
        values = -0.5 * (misfit + y.shape[-1] * LOG_2PI + log_determinants)
        halves = 0.5 * _diagonals(inverse)
        grad_noise, grad_scale = np.empty_like(y), np.zeros(len(y))
        sums, products = np.zeros_like(y), np.zeros((len(y), X.shape[-1]))
        for rows, columns, correlation, slope in blocks:
            weights = a[:, columns].copy()
            weights[:, : rows.stop - rows.start] *= 0.5
            G = a[:, rows, None] * weights[:, None]
            G -= inverse[:, rows, columns]
            diagonals = _diagonals(G)
            diagonals += halves[:, rows]
            grad_noise[:, rows] = diagonals
            grad_scale += np.vecdot(G.reshape(len(y), -1), correlation.reshape(len(y), -1))
            G *= slope
            sums[:, columns] += G.sum(-2)
            sums[:, rows] += G.sum(-1)
            products += (X[:, rows] * (G @ X[:, columns])).sum(-2)
        grad_squares = (sums[:, None] @ squares)[:, 0] - 2 * products
        if at.lengthscale.shape[-1] < X.shape[-1]:
            grad_squares = grad_squares.sum(-1, keepdims=True)
        grad_squares *= at.outputscale
        if at.noise.shape[-1] == 1:
            grad_noise = grad_noise.sum(-1, keepdims=True)
        return values, constant, Covariances(grad_noise, grad_scale[:, None], grad_squares / at.lengthscale**3)

    def constants(self, at: Covariances, kernel: Kernel) -> Array:
        """Return the prior means of `log_likelihoods`, `m`, without the rest."""
        covariance, _ = self._covariances(at, kernel)
        return self._constants(self._factorised(covariance, at, kernel, inverse=False).solutions)

    def _covariances(self, at: Covariances, kernel: Kernel) -> tuple[Array, list["Block"]]:
        """Return covariances of the observations, `m x n x n`, and their blocks: all else is undefined."""
        X, (covariance, blocks) = self.centred[0] / at.lengthscale[:, None], self.workspace
        norms, twice = np.square(X).sum(-1), (-2 * X).swapaxes(-1, -2)
        for rows, columns, correlation, slope in blocks:
            r2 = X[:, rows] @ twice[..., columns]
            r2 += norms[:, rows, None]
            r2 += norms[:, None, columns]
            np.maximum(r2, 0.0, out=r2)
            _diagonals(r2)[:] = 0.0
            correlation[:], slope[:] = CORRELATIONS[kernel](r2)
            np.multiply(correlation, at.outputscale[..., None], out=covariance[:, rows, columns])
        _diagonals(covariance)[:] += at.noise
        return covariance, blocks

    def _factorised(self, covariances: Array, at: Covariances, kernel: Kernel, inverse: bool = True) -> "Factorised":
        """Return inverses, solutions of linear systems, and log determinants.

        All are NaN for a covariance that has NaN entries, or no Cholesky factor even with jitter.

        Args:
            covariances: `m x n x n`, upper triangles; overwritten.
            at, kernel: where they are from.
            inverse: whether inverses are wanted, which take twice as long as factors.
        """
        solutions, roots = self.right.copy(), np.empty_like(self.y)
        for i, (covariance, solution) in enumerate(zip(covariances, solutions, strict=True)):
            # The transpose of a matrix in C's order is in Fortran's, which LAPACK overwrites without a copy.
            factor, broken = dpotrf(covariance.T, lower=1, clean=1, overwrite_a=1)
            if broken:
                alone = DataSets(self.X[[i]], self.y[[i]])
                (whole,), _ = alone._covariances(Covariances(*(part[[i]] for part in at)), kernel)
                factor[:] = _factor_with_jitter(torch.from_numpy(np.triu(whole) + np.triu(whole, 1).T))
            roots[i] = factor.diagonal()
            dpotrs(factor, solution.T, lower=1, overwrite_b=1)
            if inverse:
                dpotri(factor, lower=1, overwrite_c=1)
        return Factorised(covariances, solutions, 2 * np.log(roots).sum(-1))

    def _constants(self, solutions: Array) -> Array:
        """Return the prior means, `m`, given `A^-1 y` and `A^-1 1`, `m x 2 x n`."""
        if self.constant is not None:
            return np.full(len(solutions), self.constant)
        ones = solutions.sum(-1)
        means: Array = ones[:, 0] / ones[:, 1]
        return means


class Block(NamedTuple):
    """Some rows of the upper triangles of m matrices, in columns from the diagonal on.

    Attributes:
        rows, columns: the columns begin where the rows do.
        correlation: `m x r x c`.
        slope: `-2 dk/dr^2`, likewise.
    """

    rows: slice
    columns: slice
    correlation: Array
    slope: Array

    @classmethod
    def empty(cls, m: int, rows: slice, columns: slice) -> Self:
        """Return a block of undefined numbers."""
        shape = m, rows.stop - rows.start, columns.stop - columns.start
        return cls(rows, columns, np.empty(shape), np.empty(shape))


class Factorised(NamedTuple):
    """Linear algebra of m covariances.

    Attributes:
        inverse: the upper triangle of each inverse, with zeros below, `m x n x n`; or that of the factor's transpose.
        solutions: solutions for each right-hand side, `m x 2 x n`.
        log_determinants: `m`.
    """

    inverse: Array
    solutions: Array
    log_determinants: Array


def _places(n: int) -> Iterator[tuple[slice, slice]]:
    """Yield rows and columns of the blocks that hold the upper triangle of an `n x n` matrix."""
    start = 0
    while start < n:
        stop = min(n, start + max(1, BLOCK // (n - start)))
        yield slice(start, stop), slice(start, n)
        start = stop


def _diagonals(matrices: Array) -> Array:
    """Return a view of the diagonals, `m x r`, of contiguous matrices, `m x r x c` with `r <= c`."""
    m, r, c = matrices.shape
    return matrices.reshape(m, -1)[:, : r * c : c + 1]


def _factor_with_jitter(covariance: Tensor) -> Array:
    """Return the Cholesky factor of a covariance with jitter, `n x n`; NaN if there is none."""
    try:
        return psd_safe_cholesky(covariance).numpy()
    except (NanError, NotPSDError):
        return np.full(covariance.shape, math.nan)
