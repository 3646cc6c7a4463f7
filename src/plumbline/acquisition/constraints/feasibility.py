"""Acquisition functions of one point that are sums over outcomes with independent GPs, with hand-written gradients.

The log constrained expected improvement is one: its factors become terms of a sum.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from plumbline.acquisition.analytic import ClosedForm, log_expected_improvement, log_probability_of_improvement
from plumbline.core.outcomes import Role
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.gp.process import GP
from plumbline.models.gp.stack import stacked
from plumbline.spaces.with_gradient import Differentiated


class SumOverOutcomes(Differentiated):
    """The sum over outcomes of a function of each outcome's marginal posterior at a point.

    Attributes:
        processes: a GP per outcome, m of them.
        parts: a function of means and standard deviations per outcome; None for an outcome that is left out.
        groups: stacks of the GPs with a part, and their parts.
    """

    def __init__(self, processes: Sequence[GP], parts: Sequence[ClosedForm | None]) -> None:
        super().__init__(ProcessModel(*processes))
        self.processes = processes
        self.parts = parts
        counted = [(process, part) for process, part in zip(processes, parts, strict=True) if part is not None]
        stacks = stacked([process for process, _ in counted])
        self.groups = [(stack, [counted[i][1] for i in members]) for members, stack in stacks]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the acquisition values of `b x 1 x d` points, `b`, and their derivatives, `b x 1 x d`."""
        value, gradient = X.new_zeros(len(X)), torch.zeros_like(X.squeeze(-2))
        for stack, parts in self.groups:
            posterior = stack.marginal_posterior(X.squeeze(-2))
            own = [part(mean, sd) for part, mean, sd in zip(parts, posterior.mean, posterior.sd, strict=True)]
            values, grad_mean, grad_sd = (torch.stack(each) for each in zip(*own, strict=True))
            value, gradient = value + values.sum(0), gradient + posterior.vjp(grad_mean, grad_sd).sum(0)
        return value, gradient.unsqueeze(-2)

    def values(self, X: Tensor) -> Tensor:
        """Return the acquisition values of `b x 1 x d` points: `b`."""
        value = X.new_zeros(len(X))
        for stack, parts in self.groups:
            posterior = stack.marginal_posterior(X.squeeze(-2))
            for part, mean, sd in zip(parts, posterior.mean, posterior.sd, strict=True):
                value = value + part(mean, sd)[0]
        return value


def log_probability_of_zero(tolerance: float) -> ClosedForm:
    """Return `log P(f <= tolerance) P(f >= -tolerance)`: the slides split an equality into these two inequalities.

    The product is not the probability of both: at tolerance 0 that is zero, and the product is at most 1/4.
    """

    def value(mean: Tensor, sd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        at_least = log_probability_of_improvement(mean.new_tensor(-tolerance))
        above, below = at_least(mean, sd), at_least(-mean, sd)
        return above[0] + below[0], above[1] - below[1], above[2] + below[2]

    return value


def log_constrained_improvement(
    processes: Sequence[GP], roles: Sequence[Role], best: Tensor | None, tolerance: float
) -> SumOverOutcomes:
    """Return the logarithm of `EI(x) prod_i P(constraint i holds at x)`; Schonlau et al. (1998), Gardner et al. (2014).

    Args:
        processes: a GP per outcome.
        roles: roles of the outcomes.
        best: feasible incumbent value; None where there is none yet, and the objective is left out.
        tolerance: greatest distance from zero at which an equality holds.
    """
    parts: dict[Role, ClosedForm | None] = {
        "objective": None if best is None else log_expected_improvement(best),
        "at_least_zero": log_probability_of_improvement(torch.zeros((), dtype=torch.float64)),
        "zero": log_probability_of_zero(tolerance),
    }
    return SumOverOutcomes(processes, [parts[role] for role in roles])
