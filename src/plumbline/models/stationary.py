"""Fitted stationary covariances as plain functions of scaled distances.

GPyTorch's kernels are written for training: lazy, batched, differentiable in their hyperparameters. Where a fitted
kernel is evaluated thousands of times at a few points, most of the time goes into that generality.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor

Covariance = Callable[[Tensor, Tensor], Tensor]
"""Maps `... x a x d` and `... x b x d` points to `... x a x b` covariances."""


def matern52(distance: Tensor) -> Tensor:
    """Return the Matern-5/2 correlation; Rasmussen & Williams (2006), eq. 4.17."""
    s = math.sqrt(5) * distance
    return (1 + s + s.square() / 3) * torch.exp(-s)


def squared_exponential(distance: Tensor) -> Tensor:
    """Return the squared exponential correlation; Rasmussen & Williams (2006), eq. 4.9."""
    return torch.exp(-0.5 * distance.square())


@dataclass(frozen=True)
class Stationary:
    """`variance * correlation(|x - x'|)`, distances in lengthscales; no gradient flows into either of them.

    Attributes:
        lengthscale: `1 x d` or `1 x 1`.
        variance: of `f`.
        correlation: of scaled distances.
    """

    lengthscale: Tensor
    variance: Tensor
    correlation: Callable[[Tensor], Tensor]

    def __call__(self, A: Tensor, B: Tensor) -> Tensor:
        """Return the covariances of `... x a x d` with `... x b x d`."""
        # The other mode of `cdist` is faster for many points and loses half of the digits.
        mode = "donot_use_mm_for_euclid_dist"
        distance = torch.cdist(A / self.lengthscale, B / self.lengthscale, compute_mode=mode)
        return self.variance * self.correlation(distance)


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
