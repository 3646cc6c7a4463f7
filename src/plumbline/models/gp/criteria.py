"""Model-selection criteria for GPs of the same data."""

import math
from collections.abc import Callable
from typing import Literal

from plumbline.models.gp.fit import ModelOptions, unknowns_of
from plumbline.models.gp.process import GP

Criterion = Literal["likelihood", "bic", "leave-one-out"]
"""The log marginal likelihood, minus half the Bayesian information criterion, or the leave-one-out log density."""


def log_likelihood(process: GP, options: ModelOptions) -> float:
    """Return `log N(y; constant, K + noise)` of the standardised observations, without hyperparameter priors."""
    misfit = 0.5 * process.whitened.square().sum().item()
    return -misfit - process.root.diagonal().log().sum().item() - 0.5 * len(process.y) * math.log(2 * math.pi)


def bayesian_information(process: GP, options: ModelOptions) -> float:
    """Return the log likelihood minus `k log(n) / 2` for k fitted hyperparameters: -BIC / 2; Schwarz (1978)."""
    fitted = unknowns_of(process.U.shape[-1], options).number
    return log_likelihood(process, options) - 0.5 * fitted * math.log(len(process.y))


def leave_one_out_density(process: GP, options: ModelOptions) -> float:
    """Return the sum of the log densities of each observation given the others; Rasmussen & Williams (2006), eq. 5.11.

    With `B = (K + noise)^-1` and `a = B (y - constant)` the forecast of `y_i` has variance `1 / B_ii` and error
    `a_i / B_ii`. The hyperparameters are those fitted to all data.
    """
    scores = process.a.square() / process.precision
    return 0.5 * (process.precision.log() - scores - math.log(2 * math.pi)).sum().item()


CRITERIA: dict[Criterion, Callable[[GP, ModelOptions], float]] = {
    "likelihood": log_likelihood,
    "bic": bayesian_information,
    "leave-one-out": leave_one_out_density,
}
"""Criteria of a GP and the options of its fit; greater is better."""
