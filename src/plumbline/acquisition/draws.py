"""Joint draws of f at batches of points, with their vector-Jacobian products in the points."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from plumbline.models.gp.process import GP
from plumbline.models.posterior import GaussianProcess

Draws = tuple[Tensor, Callable[[Tensor], Tensor]]
"""Draws of f, `b x q x S`, and their vector-Jacobian product, which returns derivatives in the points, `b x q x d`."""


def normal_draws(samples: int, seed: int) -> Callable[[int], Tensor]:
    """Return a sampler: k -> quasi-random standard normal draws of k values, `k x samples`, the same at every call.

    The draws equal those of BoTorch's `SobolQMCNormalSampler` with the same seed.
    """

    @cache
    def draw(k: int) -> Tensor:
        if k == 0:
            return torch.empty(0, samples, dtype=torch.float64)
        return draw_sobol_normal_samples(k, samples, dtype=torch.float64, seed=seed).mT.contiguous()

    return draw


def draws_of(root: Tensor, z: Tensor) -> Tensor:
    """Return `root z`, `b x q x S`, of `b x q x k` matrices and `k x S` draws."""
    return (root.flatten(0, 1) @ z).view(*root.shape[:-1], -1)


def draws_at(process: GaussianProcess, X: Tensor, z: Tensor) -> Draws:
    """Return joint draws of f at batches of points.

    Args:
        process: GP or SVGP.
        X: `b x q x d`, in the problem's bounds.
        z: `q x S` base samples.
    """
    posterior = process.joint_posterior(X)
    f = posterior.mean.unsqueeze(-1) + draws_of(posterior.root, z)
    return f, lambda grad_f: posterior.vjp(grad_f.sum(-1), grad_f @ z.mT)


@dataclass(frozen=True)
class KnownDraws:
    """Fixed joint draws of f at some points, and conditional draws of f elsewhere given each.

    Attributes:
        process: fitted GP.
        points: `k x d`, in the problem's bounds; k may be zero.
        z: `k x S` base samples.
    """

    process: GP
    points: Tensor
    z: Tensor

    @cached_property
    def conditioned(self) -> GP:
        """The GP conditioned on noise-free values of f at the points."""
        return self.process.condition_on_mean(self.points)

    @property
    def values(self) -> Tensor:
        """The draws at the points, `k x S`, in the units of the observations."""
        n, standardisation = len(self.process.y), self.process.standardisation
        f = self.conditioned.y[n:, None] + self.process.deviation * (self.conditioned.root[n:, n:] @ self.z)
        return standardisation.location + standardisation.scale * f

    def at(self, X: Tensor, z: Tensor) -> Draws:
        """Return joint draws of f at batches of points, conditional on the draws at the known points.

        Args:
            X: `b x q x d`, in the problem's bounds.
            z: `q x S` base samples.
        """
        n, scale, deviation = len(self.process.y), self.process.standardisation.scale, self.process.deviation
        posterior = self.conditioned.joint_posterior(X)
        rows = torch.cat([posterior.half[..., n:], posterior.factor], -1)
        f = posterior.mean.unsqueeze(-1) + scale * deviation * draws_of(rows, torch.cat([self.z, z]))

        def vjp(grad_f: Tensor) -> Tensor:
            grad_f = scale * grad_f
            grad_half = grad_f.sum(-1, keepdim=True) * self.conditioned.whitened
            grad_half[..., n:] += deviation * (grad_f @ self.z.mT)
            return posterior.vjp_standardised(grad_half, deviation * (grad_f @ z.mT))

        return f, vjp
