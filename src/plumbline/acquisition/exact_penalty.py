"""The confidence bound under exact penalties of constraints (EPBO), and the smooth program that it is the value of.

The slides have it as a minimum over a point and slacks (page 67):

    min  mean_f - sqrt(beta) sd_f + rho |slack|_1
    s.t. |mean_h| - sqrt(beta) sd_h <= slack_h,  mean_g - sqrt(beta) sd_g <= slack_g,  slack >= 0

Here all is to be maximised, and inequalities are to be at least zero. With the least slacks put in, what is left is a
function of the point alone, and a sum over outcomes; it has kinks, and as a rule its maximum lies on one.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from plumbline.acquisition.analytic import OfMoments, upper_confidence_bound
from plumbline.acquisition.constrained import SumOverOutcomes
from plumbline.models.exact_process import ExactProcess
from plumbline.outcomes import Role

HARD = 1e4
"""What stands for an infinite rho: so many deviations of the objective for one of a constraint.

A penalty that exceeds the program's multipliers has the maximiser of any greater one, which is why it is called exact.
"""

ITERATIONS = 50
"""Of the program, at most."""

Array = NDArray[np.float64]

SIGNS: dict[Role, tuple[float, ...]] = {"at_least_zero": (1.0,), "zero": (1.0, -1.0)}
"""The signs that a constraint's function has in the bounds that must not be below zero."""


def penalty(role: Role, sqrt_beta: float, rho: float) -> OfMoments:
    """Return `-rho slack`, the least slack that makes the constraint's confidence bound hold."""

    def value(mean: Tensor, sd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        sign = -torch.ones_like(mean) if role == "at_least_zero" else mean.sign()
        slack = sign * mean - sqrt_beta * sd
        pays = rho * (slack > 0)
        return -pays * slack, -pays * sign, pays * sqrt_beta

    return value


class ExactPenalty(SumOverOutcomes):
    """The objective's upper confidence bound less rho times the slacks of the constraints; Lu & Paulson (2022).

    Args:
        processes: one an outcome.
        roles: of the outcomes, one of them the objective.
        sqrt_beta: standard deviations in all bounds.
        rho: units of the objective for one of a constraint; None for infinity (see `HARD`).
    """

    def __init__(
        self, processes: Sequence[ExactProcess], roles: Sequence[Role], sqrt_beta: float, rho: float | None
    ) -> None:
        scale = processes[roles.index("objective")].units.scale
        rates = [HARD * scale / process.units.scale if rho is None else rho for process in processes]
        parts = [
            upper_confidence_bound(sqrt_beta) if role == "objective" else penalty(role, sqrt_beta, rate)
            for role, rate in zip(roles, rates, strict=True)
        ]
        super().__init__(processes, parts)
        self.roles, self.sqrt_beta, self.rates = roles, sqrt_beta, rates

    def polished(self, X: Tensor, box: Tensor) -> Tensor:
        """Return where the smooth program, begun at a point, comes to: a climb ends at a kink, this goes along it.

        Args:
            X: `1 x d`, where a climb ended.
            box: `2 x d`, to stay in.

        Returns:
            `1 x d`; the point itself where nothing better is found.
        """
        with torch.no_grad():
            found = [torch.from_numpy(one) for one in self._programs(X, box)]
            points = torch.minimum(torch.maximum(box[0] + (box[1] - box[0]) * torch.stack(found), box[0]), box[1])
            ends = torch.cat([X, points]).unsqueeze(-2)
            return ends[self.values(ends).nan_to_num(nan=-torch.inf).argmax()]

    def _programs(self, X: Tensor, box: Tensor) -> list[Array]:
        """Return the point of the solved program in units of the box, `d`, with slacks and without any.

        Outcomes are in units of their processes. Without slacks, as with an infinite rho, the program is better
        conditioned than with a great one; where it has no solution, its point may still be good for something.
        """
        width = box[1] - box[0]
        d, objective = X.shape[-1], self.roles.index("objective")
        scales = [process.units.scale for process in self.processes]
        constraints = [i for i in range(len(self.roles)) if i != objective]
        bounds = [(i, sign) for i in constraints for sign in SIGNS[self.roles[i]]]
        rates = np.array([self.rates[i] * scales[i] / scales[objective] for i in constraints])
        own_slack = np.array([[float(i == j) for j in constraints] for i, _ in bounds])

        @lru_cache(maxsize=2)
        def optimistic(point: bytes) -> tuple[Array, Array]:
            """Return the bounds of the objective and of the constraints, and their gradients."""
            x = box[0] + width * torch.from_numpy(np.frombuffer(point).copy()).unsqueeze(0)
            seen = [process.at_points(x) for process in self.processes]
            values, gradients = [], []
            for i, sign in [(objective, 1.0), *bounds]:
                one = x.new_ones(1)
                values.append((sign * seen[i].mean + self.sqrt_beta * seen[i].sd) / scales[i])
                gradients.append(seen[i].pull_back(sign * one, self.sqrt_beta * one) * width / scales[i])
            return torch.cat(values).numpy(), torch.cat(gradients).numpy()

        def at(z: Array) -> tuple[Array, Array]:
            return optimistic(np.ascontiguousarray(z[:d]).tobytes())

        def solved(slack: Array) -> Array:
            """Return where the program leads from `X` and these slacks; with none, it has none."""
            paid, own = rates[: len(slack)], own_slack[:, : len(slack)]

            def loss(z: Array) -> tuple[float, Array]:
                values, gradients = at(z)
                return paid @ z[d:] - values[0], np.concatenate([-gradients[0], paid])

            held: dict[str, Any] = {
                "type": "ineq",
                "fun": lambda z: at(z)[0][1:] + own @ z[d:],
                "jac": lambda z: np.hstack([at(z)[1][1:], own]),
            }
            found: Array = minimize(
                loss,
                np.concatenate([start, slack]),
                jac=True,
                method="SLSQP",
                bounds=[(0, 1)] * d + [(0, None)] * len(slack),
                constraints=[held],
                options={"maxiter": ITERATIONS, "ftol": 1e-10},
            ).x[:d]
            return found if np.isfinite(found).all() else start

        start: Array = ((X[0] - box[0]) / width).clamp(0, 1).numpy()
        needed = np.where(own_slack > 0, -at(start)[0][1:, None], 0.0).max(0).clip(0)
        return [solved(needed), solved(needed[:0])]
