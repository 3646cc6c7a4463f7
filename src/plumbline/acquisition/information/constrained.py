"""Constrained joint entropy search: information about the constrained optimum per cost of the observed outcomes.

The optimum is a point and a value, `(x*, f*)`. Given the optimum, f(x*) = f*, an equality is zero at x*, and an
inequality is at least zero there. We omit that no other feasible point is better. An observation at x and the value at
x* are jointly normal with correlation r, so each outcome has its own distribution given the optimum. Its information is
the divergence of that distribution from the one before, averaged over draws of the optimum. Outcomes are independent
before and after: the information of several is the sum of their informations.

Gelbart, Snoek & Adams (2014) evaluate single outcomes. Hernandez-Lobato et al. (2016) divide by costs, and use such a
sum for the optimum's location (PESC). Hvarfner et al. (2022) and Tu et al. (2022) use (x*, f*).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.acquisition.covariances import through_covariances
from plumbline.acquisition.information.divergence import FAR, LEAST_SHARE, divergence_of_sign, divergence_of_value
from plumbline.acquisition.information.paths import Peaks
from plumbline.core.outcomes import Role
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.gp.marginal import LEAST_VARIANCE
from plumbline.models.gp.process import GP
from plumbline.spaces.with_gradient import Differentiated

OutcomeGroup = tuple[int, ...]
"""Indices of outcomes that are evaluated together."""


@dataclass(frozen=True)
class OfOutcome:
    """One outcome given P draws of the optimum.

    Attributes:
        process: GP of the outcome.
        noise: noise variance of an observation, standardised.
        U: `(n + P) x d`, the data's inputs and the optima in the unit cube.
        half: `P x n`, `R^-1 k` of the optima.
        variance: `P`, standardised variances of f at the optima.
        away: `P`, in standard deviations: the mean for an inequality, otherwise the value minus the mean.
        divergence: maps squared correlations, `b x P`, and `away` to information.
    """

    process: GP
    noise: Tensor
    U: Tensor
    half: Tensor
    variance: Tensor
    away: Tensor
    divergence: Callable[[Tensor, Tensor], Tensor]

    def information(self, K: Tensor) -> Tensor:
        """Return the mean information of an observation over the draws: `b`.

        Args:
            K: `b x (n + P)`, prior covariances of the points with `U`.
        """
        n, process = len(self.process.y), self.process
        half = K[:, :n] @ process.inverse_root.mT
        variance = (process.at.outputscale - half.square().sum(-1)).clamp_min(LEAST_VARIANCE) + self.noise
        covariance = K[:, n:] - half @ self.half.mT
        r2 = covariance.square() / (variance.unsqueeze(-1) * self.variance)
        return self.divergence(r2.clamp_max(1 - LEAST_SHARE), self.away).mean(-1)

    def at(self, X: Tensor) -> Tensor:
        """Return the information at `b x d` points, in the problem's bounds: `b`."""
        return self.information(self.process.prior(self.process.standardisation.inputs(X), self.U))

    def with_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the information at `b x d` points, `b`, and its derivatives, `b x d`."""
        return through_covariances(self.process, self.U, self.information, X)


def of_outcome(process: GP, role: Role, optima: Peaks, noise: Tensor) -> OfOutcome:
    """Return an outcome given draws of the optimum.

    Args:
        process: GP of the outcome.
        role: role of the outcome.
        optima: draws in the problem's bounds and in units of the objective.
        noise: noise variance of an observation, standardised.
    """
    there = process.marginal_posterior(optima.X)
    U = torch.cat([process.U, process.standardisation.inputs(optima.X)])
    value = optima.f if role == "objective" else torch.zeros_like(optima.f)
    away = ((value - there.mean) / there.sd).clamp(-FAR, FAR)
    known = (process, noise, U, there.half, there.spread.square())
    if role == "at_least_zero":
        return OfOutcome(*known, -away, divergence_of_sign)
    return OfOutcome(*known, away, divergence_of_value)


class ConstrainedInformation(Differentiated):
    """The greatest information per cost among allowed sets of outcomes to evaluate at a point.

    Args:
        processes: a GP per outcome, m of them.
        roles: roles of the outcomes, with one objective.
        optima: P draws of the constrained optimum.
        costs: costs of the outcomes.
        requests: allowed ask requests.
        noises: standardised noise variances; None for those of the GPs.
    """

    nonnegative = True

    def __init__(
        self,
        processes: Sequence[GP],
        roles: Sequence[Role],
        optima: Peaks,
        costs: Sequence[float],
        requests: Sequence[OutcomeGroup],
        noises: Sequence[Tensor] | None = None,
    ) -> None:
        super().__init__(ProcessModel(*processes))
        self.processes, self.roles, self.optima = processes, roles, optima
        self.costs, self.requests = costs, requests
        self.noises = [process.noise for process in processes] if noises is None else noises
        parts = zip(processes, roles, self.noises, strict=True)
        self.outcomes = [of_outcome(process, role, optima, noise) for process, role, noise in parts]
        included = [[float(i in request) for i in range(len(roles))] for request in requests]
        shares = optima.f.new_tensor(included)
        self.shares = shares / (shares @ optima.f.new_tensor(costs)).unsqueeze(-1)

    def under(self, processes: Sequence[GP]) -> "ConstrainedInformation":
        """Return the acquisition function under GPs with more data, at the same draws and with the same noise."""
        return ConstrainedInformation(processes, self.roles, self.optima, self.costs, self.requests, self.noises)

    def of_requests(self, X: Tensor) -> Tensor:
        """Return the information per cost of each ask request at points, `n x d`: `requests x n`."""
        with torch.no_grad():
            return self.shares @ torch.stack([outcome.at(X) for outcome in self.outcomes])

    def best_request(self, x: Tensor) -> OutcomeGroup:
        """Return the group of outcomes of greatest information per cost at a point, `1 x d`."""
        return self.requests[int(self.of_requests(x).argmax())]

    def values(self, X: Tensor) -> Tensor:
        """Return the acquisition values of `b x 1 x d` points: `b`."""
        return self.of_requests(X.squeeze(-2)).amax(0)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the acquisition values of `b x 1 x d` points, `b`, and their derivatives, `b x 1 x d`."""
        pairs = [outcome.with_gradient(X.squeeze(-2)) for outcome in self.outcomes]
        values, gradients = (torch.stack(part) for part in zip(*pairs, strict=True))
        value, best = (self.shares @ values).max(0)
        gradient = (self.shares[best].mT.unsqueeze(-1) * gradients).sum(0)
        return value, gradient.unsqueeze(-2)
