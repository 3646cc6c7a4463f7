"""Recommendation of a point as the constrained optimum."""

from collections.abc import Sequence

import torch
from botorch.utils.probability.utils import log_prob_normal_in
from torch import Tensor
from torch.special import log_ndtr

from plumbline.core.outcomes import Role
from plumbline.models.gp.process import GP


def recommended(processes: Sequence[GP], roles: Sequence[Role], X: Tensor, confidence: float, tolerance: float) -> int:
    """Return the index of the point of greatest mean among those that are feasible with a given confidence.

    If there is none, it is the point most likely to be feasible; Gelbart, Snoek & Adams (2014).

    Args:
        processes: a GP per outcome.
        roles: roles of the outcomes, with one objective.
        X: `n x d`.
        confidence: least probability that all constraints hold.
        tolerance: greatest distance from zero at which an equality holds.
    """
    log_chance, mean = X.new_zeros(len(X)), X.new_zeros(len(X))
    with torch.no_grad():
        for process, role in zip(processes, roles, strict=True):
            posterior = process.marginal_posterior(X)
            if role == "objective":
                mean = posterior.mean
            elif role == "at_least_zero":
                log_chance = log_chance + log_ndtr(posterior.mean / posterior.sd)
            else:
                ends = ((side * tolerance - posterior.mean) / posterior.sd for side in (-1, 1))
                log_chance = log_chance + log_prob_normal_in(*ends)
    sure = log_chance.exp() >= confidence
    return int((mean.where(sure, -torch.inf) if bool(sure.any()) else log_chance).argmax())
