"""Which point is held to be the constrained optimum, as things stand."""

from collections.abc import Sequence

import torch
from botorch.utils.probability.utils import log_prob_normal_in
from torch import Tensor
from torch.special import log_ndtr

from plumbline.core.outcomes import Role
from plumbline.models.gp.process import GP


def recommended(processes: Sequence[GP], roles: Sequence[Role], X: Tensor, confidence: float, tolerance: float) -> int:
    """Return which of some points has the greatest mean of those that are feasible with so much confidence.

    Where none is, it is the one that is likeliest to be feasible. The rule of Gelbart, Snoek & Adams (2014).

    Args:
        processes: one an outcome.
        roles: of the outcomes, one of them the objective.
        X: `n x d`.
        confidence: least probability that all constraints hold.
        tolerance: how far from zero an equality may be and hold.
    """
    log_chance, mean = X.new_zeros(len(X)), X.new_zeros(len(X))
    with torch.no_grad():
        for process, role in zip(processes, roles, strict=True):
            seen = process.marginal_posterior(X)
            if role == "objective":
                mean = seen.mean
            elif role == "at_least_zero":
                log_chance = log_chance + log_ndtr(seen.mean / seen.sd)
            else:
                ends = ((side * tolerance - seen.mean) / seen.sd for side in (-1, 1))
                log_chance = log_chance + log_prob_normal_in(*ends)
    sure = log_chance.exp() >= confidence
    return int((mean.where(sure, -torch.inf) if bool(sure.any()) else log_chance).argmax())
