"""The confidence bound with exact penalties of constraints (EPBO), and its smooth constrained program.

The slides state it as a minimum over a point and slacks (page 67):

    min  mean_f - sqrt(beta) sd_f + rho |slack|_1
    s.t. |mean_h| - sqrt(beta) sd_h <= slack_h,  mean_g - sqrt(beta) sd_g <= slack_g,  slack >= 0

We maximise instead, and inequality constraints are to be at least zero. With the least slacks inserted, the objective
is a function of the point alone: a sum over outcomes with kinks, on which its maximum usually lies.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from plumbline.acquisition.analytic import ClosedForm, upper_confidence_bound
from plumbline.acquisition.constraints.feasibility import SumOverOutcomes
from plumbline.core.outcomes import Role
from plumbline.models.gp.process import GP
from plumbline.models.gp.stack import stacked

HARD = 1e3
"""The finite stand-in for an infinite rho: standard deviations of the objective per deviation of a constraint.

All penalties that exceed the program's multipliers have the same maximiser, hence the name exact.
"""

ITERATIONS = 30
"""Greatest number of iterations of the program."""

Array = NDArray[np.float64]

SIGNS: dict[Role, tuple[float, ...]] = {"at_least_zero": (1.0,), "zero": (1.0, -1.0)}
"""Signs of a constraint in the program's bounds, which must be nonnegative."""


def penalty(role: Role, sqrt_beta: float, rho: float) -> ClosedForm:
    """Return `-rho slack`, with the least slack at which the constraint's confidence bound holds."""

    def value(mean: Tensor, sd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        sign = -torch.ones_like(mean) if role == "at_least_zero" else mean.sign()
        slack = sign * mean - sqrt_beta * sd
        pays = rho * (slack > 0)
        return -pays * slack, -pays * sign, pays * sqrt_beta

    return value


class ExactPenalty(SumOverOutcomes):
    """The objective's upper confidence bound minus rho times the slacks of the constraints; Lu & Paulson (2022).

    Args:
        processes: a GP per outcome.
        roles: roles of the outcomes, with one objective.
        sqrt_beta: multiple of the standard deviation in all bounds.
        rho: penalty in units of the objective per unit of a constraint; None for infinity (see `HARD`).
    """

    def __init__(self, processes: Sequence[GP], roles: Sequence[Role], sqrt_beta: float, rho: float | None) -> None:
        scale = processes[roles.index("objective")].standardisation.scale
        rates = [HARD * scale / process.standardisation.scale if rho is None else rho for process in processes]
        parts = [
            upper_confidence_bound(sqrt_beta) if role == "objective" else penalty(role, sqrt_beta, rate)
            for role, rate in zip(roles, rates, strict=True)
        ]
        super().__init__(processes, parts)
        self.unit = scale
        self.roles, self.sqrt_beta, self.rates = roles, sqrt_beta, rates

    def polished(self, X: Tensor, box: Tensor) -> Tensor:
        """Return the solution of the smooth program started at a point.

        A climb ends at a kink; the program moves along it.

        Args:
            X: `1 x d`, the end of a climb.
            box: `2 x d`, the bounds.

        Returns:
            `1 x d`; `X` itself if the solution is no better.
        """
        with torch.no_grad():
            program = Program(self, box)
            for slacks in (False, True):
                solution = program.solved(X, slacks)
                if self.values(solution.unsqueeze(0)) > self.values(X.unsqueeze(0)):
                    return solution
        return X


class Program:
    """The program over a point and slacks, in units of a box and of the standardised outcomes.

    Args:
        acquisition: the penalised confidence bound.
        box: `2 x d`, the feasible box.
    """

    def __init__(self, acquisition: ExactPenalty, box: Tensor) -> None:
        self.acquisition, self.box, self.width = acquisition, box, box[1] - box[0]
        self.dim = box.shape[-1]
        self.scales = [process.standardisation.scale for process in acquisition.processes]
        objective = acquisition.roles.index("objective")
        constraints = [i for i in range(len(self.scales)) if i != objective]
        self.rates = np.array([acquisition.rates[i] * self.scales[i] / self.scales[objective] for i in constraints])
        signed = [(i, sign) for i in constraints for sign in SIGNS[acquisition.roles[i]]]
        bounds = [(objective, 1.0), *signed]
        # Each bound is a weighted sum of a mean and a standard deviation.
        self.weights = (
            np.array([i for i, _ in bounds]),
            np.array([[sign / self.scales[i], acquisition.sqrt_beta / self.scales[i]] for i, sign in bounds]),
        )
        self.own_slack = np.array([[float(i == j) for j in constraints] for i, _ in signed])
        self.stacks = stacked(acquisition.processes)
        self.at = lru_cache(maxsize=1)(self._at)

    def solved(self, X: Tensor, slacks: bool) -> Tensor:
        """Return the solution of the program started at `X`, both `1 x d`.

        Without slacks, as for an infinite rho, the program is better conditioned than with a large rho.
        """
        start = ((X[0] - self.box[0]) / self.width).clamp(0, 1).numpy()
        least = np.where(self.own_slack > 0, -self.at(start.tobytes())[0][1:, None], 0.0).max(0).clip(0)
        slack = least if slacks else least[:0]
        paid, own, d = self.rates[: len(slack)], self.own_slack[:, : len(slack)], self.dim

        def loss(z: Array) -> tuple[float, Array]:
            values, gradients = self.at(z[:d].tobytes())
            return paid @ z[d:] - values[0], np.concatenate([-gradients[0], paid])

        constraint: dict[str, Any] = {
            "type": "ineq",
            "fun": lambda z: self.at(z[:d].tobytes())[0][1:] + own @ z[d:],
            "jac": lambda z: np.hstack([self.at(z[:d].tobytes())[1][1:], own]),
        }
        solution = minimize(
            loss,
            np.concatenate([start, slack]),
            jac=True,
            method="SLSQP",
            bounds=[(0, 1)] * d + [(0, None)] * len(slack),
            constraints=[constraint],
            options={"maxiter": ITERATIONS, "ftol": 1e-10},
        ).x[:d]
        return (self.box[0] + self.width * torch.from_numpy(solution)).clamp(self.box[0], self.box[1]).unsqueeze(0)

    def _at(self, point: bytes) -> tuple[Array, Array]:
        """Return the confidence bounds at a point, the objective first, and their gradients."""
        x = (self.box[0] + self.width * torch.from_numpy(np.frombuffer(point).copy())).unsqueeze(0)
        order, values, slopes = [], [], []
        for members, stack in self.stacks:
            posterior = stack.marginal_posterior(x)
            one, none = torch.ones_like(posterior.mean), torch.zeros_like(posterior.mean)
            order += members
            values.append(torch.cat([posterior.mean, posterior.sd], -1))
            slopes.append(torch.cat([posterior.vjp(one, none), posterior.vjp(none, one)], -2))
        back = np.argsort(order)
        value, slope = torch.cat(values).numpy()[back], (torch.cat(slopes) * self.width).numpy()[back]
        which, weights = self.weights
        return (weights * value[which]).sum(-1), (weights[..., None] * slope[which]).sum(-2)
