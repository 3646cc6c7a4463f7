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

from plumbline.acquisition.analytic import ClosedForm, upper_confidence_bound
from plumbline.acquisition.constraints.feasibility import SumOverOutcomes
from plumbline.core.outcomes import Role
from plumbline.models.gp.process import GP
from plumbline.models.gp.stack import stacked

HARD = 1e3
"""What stands for an infinite rho: so many deviations of the objective for one of a constraint.

A penalty that exceeds the program's multipliers has the maximiser of any greater one, which is why it is called exact.
"""

ITERATIONS = 30
"""Of the program, at most."""

Array = NDArray[np.float64]

SIGNS: dict[Role, tuple[float, ...]] = {"at_least_zero": (1.0,), "zero": (1.0, -1.0)}
"""The signs that a constraint's function has in the bounds that must not be below zero."""


def penalty(role: Role, sqrt_beta: float, rho: float) -> ClosedForm:
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

    def __init__(self, processes: Sequence[GP], roles: Sequence[Role], sqrt_beta: float, rho: float | None) -> None:
        scale = processes[roles.index("objective")].standardisation.scale
        rates = [HARD * scale / process.standardisation.scale if rho is None else rho for process in processes]
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
            program = Program(self, box)
            for slacks in (False, True):
                found = program.solved(X, slacks)
                if self.values(found.unsqueeze(0)) > self.values(X.unsqueeze(0)):
                    return found
        return X


class Program:
    """The program over a point and slacks, in units of a box and of the processes.

    Args:
        utility: what it is the program of.
        box: `2 x d`, the points that there are.
    """

    def __init__(self, utility: ExactPenalty, box: Tensor) -> None:
        self.utility, self.box, self.width = utility, box, box[1] - box[0]
        self.dim = box.shape[-1]
        self.scales = [process.standardisation.scale for process in utility.processes]
        objective = utility.roles.index("objective")
        constraints = [i for i in range(len(self.scales)) if i != objective]
        self.rates = np.array([utility.rates[i] * self.scales[i] / self.scales[objective] for i in constraints])
        signed = [(i, sign) for i in constraints for sign in SIGNS[utility.roles[i]]]
        bounds = [(objective, 1.0), *signed]
        # Each bound is so much of a mean and of a standard deviation.
        self.weights = (
            np.array([i for i, _ in bounds]),
            np.array([[sign / self.scales[i], utility.sqrt_beta / self.scales[i]] for i, sign in bounds]),
        )
        self.own_slack = np.array([[float(i == j) for j in constraints] for i, _ in signed])
        self.stacks = stacked(utility.processes)
        self.at = lru_cache(maxsize=1)(self._at)

    def solved(self, X: Tensor, slacks: bool) -> Tensor:
        """Return the point that the program leads to from `X`, both `1 x d`.

        Without slacks, which is what an infinite rho asks for, the program is better conditioned than with dear ones.
        """
        start = ((X[0] - self.box[0]) / self.width).clamp(0, 1).numpy()
        lacking = np.where(self.own_slack > 0, -self.at(start.tobytes())[0][1:, None], 0.0).max(0).clip(0)
        slack = lacking if slacks else lacking[:0]
        paid, own, d = self.rates[: len(slack)], self.own_slack[:, : len(slack)], self.dim

        def loss(z: Array) -> tuple[float, Array]:
            values, gradients = self.at(z[:d].tobytes())
            return paid @ z[d:] - values[0], np.concatenate([-gradients[0], paid])

        held: dict[str, Any] = {
            "type": "ineq",
            "fun": lambda z: self.at(z[:d].tobytes())[0][1:] + own @ z[d:],
            "jac": lambda z: np.hstack([self.at(z[:d].tobytes())[1][1:], own]),
        }
        found = minimize(
            loss,
            np.concatenate([start, slack]),
            jac=True,
            method="SLSQP",
            bounds=[(0, 1)] * d + [(0, None)] * len(slack),
            constraints=[held],
            options={"maxiter": ITERATIONS, "ftol": 1e-10},
        ).x[:d]
        return (self.box[0] + self.width * torch.from_numpy(found)).clamp(self.box[0], self.box[1]).unsqueeze(0)

    def _at(self, point: bytes) -> tuple[Array, Array]:
        """Return the confidence bounds at a point, the objective first, and their gradients."""
        x = (self.box[0] + self.width * torch.from_numpy(np.frombuffer(point).copy())).unsqueeze(0)
        order, values, slopes = [], [], []
        for members, stack in self.stacks:
            seen = stack.marginal_posterior(x)
            one, none = torch.ones_like(seen.mean), torch.zeros_like(seen.mean)
            order += members
            values.append(torch.cat([seen.mean, seen.sd], -1))
            slopes.append(torch.cat([seen.vjp(one, none), seen.vjp(none, one)], -2))
        back = np.argsort(order)
        value, slope = torch.cat(values).numpy()[back], (torch.cat(slopes) * self.width).numpy()[back]
        which, weights = self.weights
        return (weights * value[which]).sum(-1), (weights[..., None] * slope[which]).sum(-2)
