"""Fitted stationary covariances as plain functions of scaled distances, with their gradients by hand.

GPyTorch's kernels are written for training: lazy, batched, differentiable in their hyperparameters. Where a fitted
kernel is evaluated thousands of times at a few points, most of the time goes into that generality.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor

from plumbline.pull_back import with_pull_back

Covariance = Callable[[Tensor, Tensor], Tensor]
"""Maps `... x a x d` and `... x b x d` points to `... x a x b` covariances."""


def matern52(distance: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Matern-5/2 correlation (Rasmussen & Williams, 2006, eq. 4.17), and its slope `-c'(r) / r`."""
    s = math.sqrt(5) * distance
    fading = torch.exp(-s)
    linear = (1 + s) * fading
    return torch.addcmul(linear, s.square(), fading, value=1 / 3), linear * (5 / 3)


def squared_exponential(distance: Tensor) -> tuple[Tensor, Tensor]:
    """Return the squared exponential correlation (Rasmussen & Williams, 2006, eq. 4.9), and its slope `-c'(r) / r`."""
    c = torch.exp(-0.5 * distance.square())
    return c, c


@dataclass(frozen=True)
class Stationary:
    """`variance * correlation(|x - x'|)`, distances in lengthscales; no gradient flows into either of them.

    Attributes:
        lengthscale: `1 x d` or `1 x 1`.
        variance: of `f`.
        correlation: of scaled distances, with its slope `-c'(r) / r`, which has no pole where points coincide.
    """

    lengthscale: Tensor
    variance: Tensor
    correlation: Callable[[Tensor], tuple[Tensor, Tensor]]

    def __call__(self, A: Tensor, B: Tensor) -> Tensor:
        """Return the covariances of `... x a x d` with `... x b x d`."""
        return self.variance * self.correlation(_distance(A / self.lengthscale, B / self.lengthscale))[0]

    def with_pull_back(self, A: Tensor, B: Tensor) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor]]]:
        """Return the covariances and what pulls gradients in them back to `A`.

        With `H = to_K * variance * slope` the gradient is `(H B - diag(H 1) A) / lengthscale^2`.
        """
        A, B = A / self.lengthscale, B / self.lengthscale
        correlation, slope = self.correlation(_distance(A, B))

        def pull_back(to_K: Tensor) -> tuple[Tensor]:
            H = to_K * slope * self.variance
            return (torch.addcmul(H @ B, H.sum(dim=-1, keepdim=True), A, value=-1) / self.lengthscale,)

        return self.variance * correlation, pull_back


def _distance(A: Tensor, B: Tensor) -> Tensor:
    # The other mode of `cdist` is faster for many points and loses half of the digits.
    return torch.cdist(A, B, compute_mode="donot_use_mm_for_euclid_dist")


def covariance_with_pull_back(
    covariance: Covariance, A: Tensor, B: Tensor
) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, ...]]]:
    """Return covariances and what pulls gradients in them back to `A` alone; by hand where the kernel is known here."""
    if isinstance(covariance, Stationary):
        return covariance.with_pull_back(A, B)
    return with_pull_back(lambda points: covariance(points, B), A)


def covariance_of(kernel: Kernel) -> Covariance:
    """Return a fitted kernel as a function; one that is not known here goes on as it is."""
    scaled = isinstance(kernel, ScaleKernel)
    base = kernel.base_kernel if scaled else kernel
    variance = kernel.outputscale.detach() if scaled else torch.ones((), dtype=torch.float64)
    if isinstance(base, RBFKernel):
        return Stationary(base.lengthscale.detach(), variance, squared_exponential)
    if isinstance(base, MaternKernel) and base.nu == 2.5:
        return Stationary(base.lengthscale.detach(), variance, matern52)
    return lambda A, B: kernel(A, B).to_dense()
