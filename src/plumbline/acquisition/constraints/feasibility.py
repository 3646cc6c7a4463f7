"""Utilities of one point under several independent exact processes, with gradients by hand: sums of a part an outcome.

The logarithm of constrained expected improvement is one: a product of what each outcome has to say.
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
    """The sum of a function an outcome of what its process says of f at a point.

    Attributes:
        processes: one an outcome, m of them.
        parts: a function of means and standard deviations for each; None for an outcome that does not count.
        groups: stacks of those that count, and their parts.
    """

    def __init__(self, processes: Sequence[GP], parts: Sequence[ClosedForm | None]) -> None:
        super().__init__(ProcessModel(*processes))
        self.processes = processes
        self.parts = parts
        counted = [(process, part) for process, part in zip(processes, parts, strict=True) if part is not None]
        stacks = stacked([process for process, _ in counted])
        self.groups = [(stack, [counted[i][1] for i in members]) for members, stack in stacks]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the utilities of `b x 1 x d` points, `b`, and their derivatives, `b x 1 x d`."""
        value, gradient = X.new_zeros(len(X)), torch.zeros_like(X.squeeze(-2))
        for stack, parts in self.groups:
            seen = stack.marginal_posterior(X.squeeze(-2))
            own = [part(mean, sd) for part, mean, sd in zip(parts, seen.mean, seen.sd, strict=True)]
            values, grad_mean, grad_sd = (torch.stack(each) for each in zip(*own, strict=True))
            value, gradient = value + values.sum(0), gradient + seen.vjp(grad_mean, grad_sd).sum(0)
        return value, gradient.unsqueeze(-2)

    def values(self, X: Tensor) -> Tensor:
        """Return the utilities of `b x 1 x d` points: `b`."""
        value = X.new_zeros(len(X))
        for stack, parts in self.groups:
            seen = stack.marginal_posterior(X.squeeze(-2))
            for part, mean, sd in zip(parts, seen.mean, seen.sd, strict=True):
                value = value + part(mean, sd)[0]
        return value


def log_probability_of_zero(tolerance: float) -> ClosedForm:
    """Return `log P(f <= tolerance) P(f >= -tolerance)`: the two inequalities that the slides make of an equality.

    Not the probability of both at once: at tolerance 0, where that is zero, this is 1/4 at most.
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
        processes: one an outcome.
        roles: of the outcomes.
        best: feasible value to improve on; None where there is none yet: the objective does not count then.
        tolerance: how far from zero an equality may be and hold.
    """
    parts: dict[Role, ClosedForm | None] = {
        "objective": None if best is None else log_expected_improvement(best),
        "at_least_zero": log_probability_of_improvement(torch.zeros((), dtype=torch.float64)),
        "zero": log_probability_of_zero(tolerance),
    }
    return SumOverOutcomes(processes, [parts[role] for role in roles])
