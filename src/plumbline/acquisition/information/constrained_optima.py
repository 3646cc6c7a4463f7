"""Draws of the constrained optimum: feasible maximisers of joint draws of objective and constraints."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from botorch.utils.sampling import draw_sobol_samples
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from plumbline.acquisition.information.paths import Peaks
from plumbline.core.outcomes import Role
from plumbline.models.gp.pathwise import Paths
from plumbline.spaces.base import Space
from plumbline.spaces.search import inside
from plumbline.spaces.table import Table

STARTS = 2
"""Number of climbs per draw, from the best starting points."""

ITERATIONS = 15
"""Greatest number of iterations of a climb. Five to ten are usual; longer climbs seldom end, and each iteration costs
many evaluations."""

DEAR = 10.0
"""Penalty in the choice of starts: standard deviations of the objective per deviation of a constraint."""

HOLDS = 1e-6
"""Tolerance of constraints in standard deviations: the violation that remains at the end of a climb."""

Array = NDArray[np.float64]


def constrained_peaks(
    paths: Sequence[Paths], roles: Sequence[Role], space: Space, raw_samples: int, seed: int
) -> Peaks:
    """Return the feasible maximiser of each joint draw in a settled space; NaN where no point is feasible.

    In a table it is a row or an observed point. In a box SLSQP climbs each draw under its constraints, from the best
    Sobol points and data.

    Args:
        paths: `P` draws of each outcome.
        roles: roles of the outcomes, with one objective.
        space: settled space.
        raw_samples: number of Sobol points in a box.
        seed: seed of the Sobol points.
    """
    objective = roles.index("objective")
    X = points_to_try(paths, space, raw_samples, seed)
    values = [path.everywhere(X) for path in paths]
    violation = sum(
        (shortfall(f, path, role) for f, path, role in zip(values, paths, roles, strict=True)), X.new_zeros(())
    )
    f, best = values[objective].where(violation <= HOLDS, -torch.inf).max(-1)
    places = X[best]
    if not isinstance(space, Table):
        score = values[objective] / paths[objective].process.standardisation.scale - DEAR * violation
        starts = X[score.topk(min(STARTS, len(X)), dim=-1).indices]
        for i, own in enumerate(starts):
            draw = Draw([path.only([i]) for path in paths], roles, space.bounds)
            for start in own:
                end, value = draw.climbed(start)
                if value > f[i]:
                    places[i], f[i] = end, value
    feasible = torch.isfinite(f)
    return Peaks(places.where(feasible.unsqueeze(-1), torch.nan), f.where(feasible, torch.nan))


def points_to_try(paths: Sequence[Paths], space: Space, raw_samples: int, seed: int) -> Tensor:
    """Return candidates for starts: rows of a table or Sobol points of a box, and the data of all outcomes, `N x d`."""
    if isinstance(space, Table):
        raw = space.rows
    else:
        raw = draw_sobol_samples(space.bounds, n=raw_samples, q=1, seed=seed).squeeze(1)
    data = torch.cat([path.process.standardisation.points(path.process.U) for path in paths]).unique(dim=0)
    return torch.cat([raw, data[inside(data, space.bounds)]])


def shortfall(f: Tensor, path: Paths, role: Role) -> Tensor:
    """Return the constraint violations of values `f` of an outcome, in standard deviations of the observations."""
    if role == "objective":
        return torch.zeros_like(f)
    fails = f.abs() if role == "zero" else (-f).clamp_min(0)
    return fails / path.process.standardisation.scale


class Draw:
    """One joint draw of all outcomes as a smooth program, in the unit cube and in scaled outcomes.

    Args:
        paths: a path per outcome.
        roles: roles of the outcomes.
        box: `2 x d`.
    """

    def __init__(self, paths: Sequence[Paths], roles: Sequence[Role], box: Tensor) -> None:
        self.paths, self.box, self.width = paths, box, box[1] - box[0]
        self.scale = np.array([path.process.standardisation.scale for path in paths])
        self.objective = roles.index("objective")
        self.places = {role: [i for i, one in enumerate(roles) if one == role] for role in ("at_least_zero", "zero")}
        self.at = lru_cache(maxsize=1)(self._at)

    def climbed(self, start: Tensor) -> tuple[Tensor, float]:
        """Return the end of a climb from `start`, both `d`, and the objective there.

        The objective is minus infinity if a constraint is violated.
        """
        end = minimize(
            lambda u: tuple(-part[self.objective] for part in self.at(u.tobytes())),
            ((start - self.box[0]) / self.width).numpy(),
            jac=True,
            method="SLSQP",
            bounds=[(0, 1)] * len(start),
            constraints=[self._constraint("ineq", "at_least_zero"), self._constraint("eq", "zero")],
            options={"maxiter": ITERATIONS, "ftol": 1e-8},
        ).x.clip(0, 1)
        values, _ = self.at(end.tobytes())
        holds = (values[self.places["at_least_zero"]] >= -HOLDS).all() and (
            np.abs(values[self.places["zero"]]) <= HOLDS
        ).all()
        value = values[self.objective] * self.scale[self.objective] if holds else -np.inf
        return self.box[0] + self.width * torch.from_numpy(end), float(value)

    def _constraint(self, kind: str, role: Role) -> dict[str, Any]:
        places = self.places[role]
        return {
            "type": kind,
            "fun": lambda u: self.at(u.tobytes())[0][places],
            "jac": lambda u: self.at(u.tobytes())[1][places],
        }

    def _at(self, point: bytes) -> tuple[Array, Array]:
        """Return all scaled outcomes at a point, `m`, and their gradients, `m x d`."""
        x = self.box[0] + self.width * torch.from_numpy(np.frombuffer(point).copy())
        pairs = [path.each(x.view(1, 1, -1)) for path in self.paths]
        values = torch.cat([value.flatten() for value, _ in pairs]).numpy()
        gradients = (torch.cat([gradient.flatten(0, 1) for _, gradient in pairs]) * self.width).numpy()
        return values / self.scale, gradients / self.scale[:, None]
