"""L-BFGS-B on many functions that are evaluated together.

Byrd et al. (1995), Zhu et al. (1997); the line search is that of Moré and Thuente (1994). SciPy's compiled routine
makes the steps, row by row: a row ends where `scipy.optimize.minimize` would end, to the last digit, whatever rows run
beside it. Only the evaluation is batched.

The routine is private to SciPy. `fmin_l_bfgs_b_batched` of BoTorch, which calls it in the same way, takes two to three
times as long for the loop around it.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import _lbfgsb

Array = NDArray[np.float64]

ValueAndGradient = Callable[[Array, list[int]], tuple[Array, Array]]
"""Maps points, `b x k`, and the numbers of their rows, b, to values, `b`, and gradients, `b x k`."""

EPSILON = float(np.finfo(np.float64).eps)

LINE_SEARCH_STEPS = 20
"""Greatest number of evaluations of a line search, as in SciPy."""


class Status(IntEnum):
    """How the minimisation of a row ends.

    Attributes:
        CONVERGED: the projected gradient or the last decrease is small enough.
        STOPPED: at the greatest number of iterations.
        FAILED: the line search finds no lower value, as at a kink, or the start has no finite value and gradient.
    """

    CONVERGED = 0
    STOPPED = 1
    FAILED = 2


class Minima(NamedTuple):
    """Where the minimisation of each row ends.

    Attributes:
        points: `m x k`.
        values: the values there, `m`.
        status: m times a `Status`.
    """

    points: Array
    values: Array
    status: list[Status]


class Iterate(NamedTuple):
    """A point, `k`, its value, and its gradient, `k`."""

    point: Array
    value: float
    gradient: Array


def minimise(
    value_and_gradient: ValueAndGradient,
    starts: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    units: ArrayLike = 1.0,
    maxiter: int = 15_000,
    memory: int = 10,
    ftol: float = 1e7 * EPSILON,
    pgtol: float = 1e-5,
) -> Minima:
    """Minimise a function for each row of starts, in a box.

    The defaults are SciPy's. A value or a gradient that is not finite shortens the step of its row alone.

    Args:
        value_and_gradient: the functions; called with the rows that have not ended.
        starts: `m x k`; those outside the box are moved to its nearest point.
        lower, upper: bounds: `m x k`, `k` for all rows, or one for all variables; infinite where there is none.
        units: lengths in which steps and gradients are measured, of such a shape. The first step of a row is no longer
            than one of them. Powers of two change no digit of what is evaluated.
        maxiter: greatest number of iterations of a row.
        memory: number of steps that the approximation of the Hessian matrix is made of.
        ftol: a row has converged when an iteration lowers its value by no more than this share of the value, or of 1
            where the value is smaller than 1.
        pgtol: a row has converged when no element of its projected gradient, per unit, is larger.

    Raises:
        ValueError: a lower bound is above the upper one.
    """
    starts = np.asarray(starts, np.float64)
    sides = (lower, upper, units)
    low, high, units = (np.array(np.broadcast_to(side, starts.shape), np.float64, order="C") for side in sides)
    if (low > high).any():
        raise ValueError("L-BFGS-B: a lower bound is above the upper one")
    points = starts.clip(low, high) / units
    rows = _rows(points, low / units, high / units, maxiter, memory, ftol / EPSILON, pgtol)
    going = list(range(len(points)))
    while going:
        # Copies, since the routine writes into points and gradients.
        at = points[going]
        values, gradients = value_and_gradient(at * units[going], going)
        gradients = np.array(gradients, np.float64) * units[going]
        finite = np.isfinite(values) & np.isfinite(gradients).all(-1)
        evaluated = zip(going, at, values.tolist(), gradients, finite.tolist(), strict=True)
        going = [i for i, x, value, gradient, fine in evaluated if rows[i].advance(Iterate(x, value, gradient), fine)]
    ends = np.array([row.reached.point for row in rows]).reshape(points.shape) * units
    # Rounding must not carry an end across a bound.
    return Minima(ends.clip(low, high), np.array([row.reached.value for row in rows]), [row.status for row in rows])


def parabolic(reached: Iterate, point: Array) -> Iterate:
    """Return the finite value and gradient that make a line search try a quarter of its step instead.

    Along the step they belong to the parabola with the value and the slope of the last iterate at its beginning, and
    its minimum at a quarter of it.

    Args:
        reached: the last iterate.
        point: where the line search has met what is not finite, `k`.
    """
    drop = abs(float((point - reached.point) @ reached.gradient))
    return Iterate(point, reached.value + drop, -3.0 * reached.gradient)


NEW_ITERATE, EVALUATE, CONVERGED = 1, 3, 4
"""What the routine reports: it has a new iterate, it wants a value and a gradient, or it has converged."""


class _Row:
    """SciPy's routine on one function.

    Args:
        maxiter: greatest number of iterations.
        before, after: arguments of the routine, before and after value and gradient.
        task: what the routine reports, with a reason.

    Attributes:
        reached: the last iterate.
        status: how it ended.
    """

    reached: Iterate
    status: Status

    def __init__(self, maxiter: int, before: tuple[Any, ...], after: tuple[Any, ...], task: NDArray[np.int32]) -> None:
        self.before, self.after, self.task = before, after, task
        self.left = maxiter
        self.started = False
        point = before[1]
        _lbfgsb.setulb(*before, 0.0, np.zeros_like(point), *after)

    def advance(self, at: Iterate, finite: bool) -> bool:
        """Go on with the value and the gradient of the last point; return whether those of another one are wanted.

        Args:
            at: the last point; its gradient may be overwritten.
            finite: whether its value and its gradient are.
        """
        if not self.started:
            self.reached, self.started = at, True
            if not finite:
                return self._end(Status.FAILED)
        elif not finite:
            at = parabolic(self.reached, at.point)
        while True:
            _lbfgsb.setulb(*self.before, at.value, at.gradient, *self.after)
            report = self.task[0]
            if report == EVALUATE:
                return True
            if report != NEW_ITERATE or not finite:
                return self._end(Status.CONVERGED if report == CONVERGED else Status.FAILED)
            self.reached = at
            self.left -= 1
            if self.left <= 0:
                return self._end(Status.STOPPED)

    def _end(self, status: Status) -> bool:
        self.status = status
        return False


def _rows(points: Array, low: Array, high: Array, maxiter: int, memory: int, ftol: float, pgtol: float) -> list[_Row]:
    """Return the routine of each row, which writes the points to evaluate into `points`, `m x k`."""
    m, k = points.shape
    bounded = np.isfinite(low), np.isfinite(high)
    # No bound, a lower one, both, or an upper one.
    kinds = np.array([[0, 3], [1, 2]], np.int32)[tuple(side.astype(int) for side in bounded)]
    low, high = (np.where(there, side, 0.0) for there, side in zip(bounded, (low, high), strict=True))
    reals, logicals, integers, numbers = 2 * memory * k + 5 * k + 11 * memory**2 + 8 * memory, 4, 44, 29
    workspaces = zip(
        points,
        low,
        high,
        kinds,
        np.zeros((m, reals)),
        np.zeros((m, 3 * k), np.int32),
        np.zeros((m, 2), np.int32),
        np.zeros((m, logicals), np.int32),
        np.zeros((m, integers), np.int32),
        np.zeros((m, numbers)),
        np.zeros((m, 2), np.int32),
        strict=True,
    )
    return [
        _Row(
            maxiter,
            (memory, x, below, above, kind),
            (ftol, pgtol, wa, iwa, task, lsave, isave, dsave, LINE_SEARCH_STEPS, ln_task),
            task,
        )
        for x, below, above, kind, wa, iwa, task, lsave, isave, dsave, ln_task in workspaces
    ]
