"""Updates of a GP's posterior mean by one observation, with hand-written gradients."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from plumbline.models.gp.marginal import GPMarginalPosterior
from plumbline.models.gp.process import GP


@dataclass(frozen=True)
class Targets:
    """Points whose posterior means an observation updates.

    Attributes:
        process: fitted GP.
        X: `T x d`, shared by all queries, or `b x T x d`, one set per query; in the problem's bounds.
    """

    process: GP
    X: Tensor

    @cached_property
    def posterior(self) -> GPMarginalPosterior:
        """Marginal posteriors at all points."""
        return self.process.marginal_posterior(self.X.reshape(-1, self.X.shape[-1]))

    @property
    def mean(self) -> Tensor:
        """Posterior means, in units of the observations: `T`, or `b x T`."""
        return self.posterior.mean.view(self.X.shape[:-1])

    def mean_changes(self, queries: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the change of each mean per standard deviation of an observation at a query.

        It is `k_n(x', x) / sqrt(k_n(x, x) + noise)`: the mean at x' becomes `mean + change Z`, with Z standard normal.

        Args:
            queries: `b x d`, in the problem's bounds.

        Returns:
            `b x T` in units of the observations, and their vector-Jacobian product in the queries, `b x d`.
        """
        process, size = self.process, self.process.standardisation.scale * self.process.deviation
        at = process.marginal_posterior(queries)
        half = self.posterior.half.view(*self.X.shape[:-1], -1)
        half = half.expand(len(queries), *half.shape[-2:])
        U = process.standardisation.inputs(queries).unsqueeze(-2)
        others = process.standardisation.inputs(self.X)
        prior, vjp_prior = process.prior_with_vjp(U, others.expand(len(queries), *others.shape[-2:]))
        covariance = (prior - at.half.unsqueeze(-2) @ half.mT).squeeze(-2)
        spread = (at.spread.square() + process.noise).sqrt().unsqueeze(-1)

        def vjp(grad_change: Tensor) -> Tensor:
            grad_covariance = size * grad_change / spread
            grad_variance = -0.5 * (grad_covariance * covariance).sum(-1, keepdim=True) / spread.square()
            grad_half = -(grad_covariance.unsqueeze(-2) @ half).squeeze(-2) - 2 * grad_variance * at.half
            gradient = at.unscaled(at.vjp_covariances(grad_half @ process.inverse_root))
            return gradient + vjp_prior(grad_covariance.unsqueeze(-2)).squeeze(-2) / process.standardisation.width

        return size * covariance / spread, vjp


EVERY = slice(None)


class UpdatedMeans(Protocol):
    """Posterior means after each of b observations, as functions of the point."""

    def __call__(self, X: Tensor, rows: slice | list[int] = EVERY) -> tuple[Tensor, Tensor]:
        """Return k of the means, each at its own point, `k`, and their gradients, `k x d`.

        Args:
            X: `k x d`, in the problem's bounds.
            rows: indices of the k means among the b.
        """
        ...


def updated_means(process: GP, queries: Tensor, Z: Tensor) -> UpdatedMeans:
    """Return the posterior means after observations `Z` standard deviations above their expectation.

    Args:
        process: GP before the observations.
        queries: `b x d`, a query per mean.
        Z: `b`, standardised observations.

    Returns:
        The b means, in the problem's bounds and units.
    """
    size = process.deviation
    at = process.marginal_posterior(queries)
    per_covariance = size * Z / (at.spread.square() + process.noise).sqrt()
    # The mean is linear in the covariances with the data and in the prior covariance with the query.
    grad_k = process.a - per_covariance.unsqueeze(-1) * (at.half @ process.inverse_root)
    U = process.standardisation.inputs(queries).unsqueeze(-2)

    def means(X: Tensor, rows: slice | list[int] = EVERY) -> tuple[Tensor, Tensor]:
        posterior = process.marginal_posterior(X)
        prior, vjp = process.prior_with_vjp(process.standardisation.inputs(X).unsqueeze(-2), U[rows])
        covariance = prior.view(-1) - (posterior.half * at.half[rows]).sum(-1)
        value = posterior.location + per_covariance[rows] * covariance
        # A copy, since vjp_covariances overwrites it.
        gradient = posterior.unscaled(posterior.vjp_covariances(grad_k[rows].clone()))
        gradient = gradient + vjp(per_covariance[rows, None, None]).squeeze(-2) / process.standardisation.width
        return process.standardisation.observations(value), process.standardisation.scale * gradient

    return means


def standard_normal(samples: int) -> Tensor:
    """Return standard normal quantiles at the midpoints of `samples` equal parts of [0, 1]."""
    return torch.special.ndtri((torch.arange(samples, dtype=torch.float64) + 0.5) / samples)
