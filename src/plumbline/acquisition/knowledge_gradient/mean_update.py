"""What one observation does to the mean of an exact process elsewhere, with gradients by hand."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from plumbline.models.gp.process import GP, MarginalPosterior


@dataclass(frozen=True)
class Targets:
    """Points whose means are watched.

    Attributes:
        process: whose means they are.
        X: `T x d` for all queries alike, or `b x T x d` for each of b queries its own; in the problem's bounds.
    """

    process: GP
    X: Tensor

    @cached_property
    def seen(self) -> MarginalPosterior:
        """What the process says of all of them."""
        return self.process.marginal_posterior(self.X.reshape(-1, self.X.shape[-1]))

    @property
    def mean(self) -> Tensor:
        """Their means, in units of the observations: `T`, or `b x T`."""
        return self.seen.mean.view(self.X.shape[:-1])

    def gains(self, queries: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return by how much a standard deviation of an observation at a query moves each mean.

        It is `k_n(x', x) / sqrt(k_n(x, x) + noise)`: the mean at x' becomes `mean + gain Z`, with Z standard normal.

        Args:
            queries: `b x d`, in the problem's bounds.

        Returns:
            `b x T` in units of the observations, and what maps the gradient in them to that in the queries, `b x d`.
        """
        process, size = self.process, self.process.standardisation.scale * self.process.deviation
        at = process.marginal_posterior(queries)
        half = self.seen.half.view(*self.X.shape[:-1], -1)
        half = half.expand(len(queries), *half.shape[-2:])
        U = process.standardisation.inputs(queries).unsqueeze(-2)
        others = process.standardisation.inputs(self.X)
        prior, vjp_prior = process.prior_with_vjp(U, others.expand(len(queries), *others.shape[-2:]))
        covariance = (prior - at.half.unsqueeze(-2) @ half.mT).squeeze(-2)
        spread = (at.spread.square() + process.noise).sqrt().unsqueeze(-1)

        def vjp(grad_gain: Tensor) -> Tensor:
            grad_covariance = size * grad_gain / spread
            grad_variance = -0.5 * (grad_covariance * covariance).sum(-1, keepdim=True) / spread.square()
            grad_half = -(grad_covariance.unsqueeze(-2) @ half).squeeze(-2) - 2 * grad_variance * at.half
            gradient = at.unscaled(at.vjp_covariances(grad_half @ process.inverse_root))
            return gradient + vjp_prior(grad_covariance.unsqueeze(-2)).squeeze(-2) / process.standardisation.width

        return size * covariance / spread, vjp


def believed(process: GP, X: Tensor) -> GP:
    """Return the process that has seen what it expects at points, `k x d`: its means stay, its variances shrink.

    Ginsbourger et al. (2010) call it the kriging believer, Desautels et al. (2014) hallucination.
    """
    return process.joined(X, process.marginal_posterior(X).mean.unsqueeze(-1))


EVERY = slice(None)


class UpdatedMeans(Protocol):
    """Means after observations, b of them, as functions of where."""

    def __call__(self, X: Tensor, rows: slice | list[int] = EVERY) -> tuple[Tensor, Tensor]:
        """Return k of the means at a point each, `k`, and their gradients, `k x d`; `rows` says which k.

        Args:
            X: `k x d`, in the problem's bounds.
            rows: k of the b.
        """
        ...


def updated_means(process: GP, queries: Tensor, Z: Tensor) -> UpdatedMeans:
    """Return the mean after an observation `Z` standard deviations above its own, as a function of where.

    Args:
        process: before the observation.
        queries: `b x d`, one for each mean.
        Z: `b`.

    Returns:
        The b means, in the problem's bounds and units.
    """
    size = process.deviation
    at = process.marginal_posterior(queries)
    per_covariance = size * Z / (at.spread.square() + process.noise).sqrt()
    # The mean is linear in the covariances with the data and in the prior covariance with the query.
    grad_k = process.a - per_covariance.unsqueeze(-1) * (at.half @ process.inverse_root)
    asked = process.standardisation.inputs(queries).unsqueeze(-2)

    def means(X: Tensor, rows: slice | list[int] = EVERY) -> tuple[Tensor, Tensor]:
        seen = process.marginal_posterior(X)
        prior, vjp = process.prior_with_vjp(process.standardisation.inputs(X).unsqueeze(-2), asked[rows])
        covariance = prior.view(-1) - (seen.half * at.half[rows]).sum(-1)
        value = seen.location + per_covariance[rows] * covariance
        # A copy, for it is overwritten.
        gradient = seen.unscaled(seen.vjp_covariances(grad_k[rows].clone()))
        gradient = gradient + vjp(per_covariance[rows, None, None]).squeeze(-2) / process.standardisation.width
        return process.standardisation.observations(value), process.standardisation.scale * gradient

    return means


def standard_normal(samples: int) -> Tensor:
    """Return the quantiles of the standard normal distribution in the middle of as many equal parts."""
    return torch.special.ndtri((torch.arange(samples, dtype=torch.float64) + 0.5) / samples)
