r"""A rover's path through obstacles, a spline; Wang et al. (2018) with the obstacles of Maus et al. (2023).

`x = (dx_1, dy_1, ..., dx_30, dy_30)` are the steps between 31 points of the plane, beginning at the start. The path is
a cubic B-spline through the points, and the reward, to be maximised, is

.. math:: 5 - \int c\, ds - 100 \lVert p_{end} - p_{goal} \rVert_1, \quad c(p) = .05 + 20 [p \text{ is in an obstacle}],

where the outside of the unit square is an obstacle too. The path need not reach the goal. The numbers are those of
the published code of approximation-aware BO (Maus et al., 2024).
"""

import numpy as np
import torch
from botorch.test_functions import SyntheticTestFunction
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline
from torch import Tensor

from plumbline.problems.base import Context, problems
from plumbline.problems.build import with_noise
from plumbline.problems.options import ProblemOptions

Array = NDArray[np.float64]

STEPS = 30
START, GOAL = (0.05, 0.05), (0.95, 0.95)

SIDE = 0.08
"""Side of an obstacle, a square."""

MIDDLES = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
"""Centres of the obstacles along either axis; there is one at every pair but the first and the last."""

EDGES = np.stack([MIDDLES - SIDE / 2, MIDDLES + SIDE / 2], axis=1).ravel()

COST, OBSTACLE_COST, GOAL_COST = 0.05, 20.0, 100.0
"""Costs of a unit of length, of a unit inside an obstacle in addition, and of a unit of distance from the goal."""

OFFSET = 5.0

PARAMETERS = np.linspace(0.0, 1.0, 1_000)
"""Parameters at which the spline is evaluated."""


def way(steps: Array) -> Array:
    """Return 1,000 points of the spline through the running sums of `steps` (`n x 2`) from the start: `1,000 x 2`.

    It interpolates with chord lengths as parameters and no knots at the second and the last but one point, as in
    FITPACK's `parcur`. A point equal to the previous one is dropped. Through three points or two it is the parabola or
    the line, and with one the rover does not move; the published code has no value there.
    """
    points = np.cumsum([START, *steps], axis=0)
    lengths = np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))
    if lengths[-1] == 0:
        return np.tile(points[0], (len(PARAMETERS), 1))
    parameters = np.concatenate([[0.0], lengths / lengths[-1]])
    # Compared by parameter, since points that differ in their last digits may share one.
    moved = np.concatenate([[True], np.diff(parameters) > 0])
    parameters, points = parameters[moved], points[moved]
    return make_interp_spline(parameters, points, k=min(3, len(points) - 1))(PARAMETERS)


def blocked(points: Array) -> NDArray[np.bool_]:
    """Return whether `points` (`n x 2`) are in an obstacle or outside the unit square: `n`.

    Obstacles contain their lower and left edges and not the others.
    """
    place = np.searchsorted(EDGES, points, side="right")  # odd between the edges of an obstacle, of number place // 2
    number = place // 2
    corner = (number == 0).all(axis=1) | (number == len(MIDDLES) - 1).all(axis=1)
    obstacle = (place % 2 == 1).all(axis=1) & ~corner
    return obstacle | ((points < 0) | (points >= 1)).any(axis=1)


def cost(points: Array) -> float:
    """Return the cost of a path along `points` (`n x 2`), including the distance of its end from the goal."""
    each = COST + OBSTACLE_COST * blocked(points)
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    missed = np.abs(points[-1] - GOAL).sum()
    return float(lengths @ (each[1:] + each[:-1]) / 2 + GOAL_COST * missed)


class Rover(SyntheticTestFunction):
    """The reward of a rover's path through obstacles; to be maximised.

    A straight line without obstacles would have 4.936. There are obstacles on it, and the greatest value is less, but
    unknown.
    """

    dim = 2 * STEPS
    continuous_inds = list(range(dim))  # noqa: RUF012 - BoTorch's class attributes
    _bounds = [(-1 / STEPS, 2 / STEPS)] * dim
    _is_minimization_by_default = False

    @property
    def optimizers(self) -> Tensor:
        """Raise NotImplementedError: the best path is unknown."""
        raise NotImplementedError("The best way of the rover is not known.")

    def _evaluate_true(self, X: Tensor) -> Tensor:
        rows = X.detach().reshape(-1, STEPS, 2).double().cpu().numpy()
        rewards = [OFFSET - cost(way(steps)) for steps in rows]
        return torch.tensor(rewards, dtype=torch.float64).reshape(X.shape[:-1]).to(X)


@problems.register("rover", ProblemOptions)
def rover(options: ProblemOptions, _: Context) -> SyntheticTestFunction:
    """60-d, a rover's path through obstacles, thirty steps in the plane."""
    return with_noise(Rover(), options)
