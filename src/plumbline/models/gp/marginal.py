"""Marginal posteriors of GPs at points, with their gradients.

A search asks for a few points at a time, and operations on so few numbers take PyTorch three times as long as NumPy.
Hence all is computed in arrays; autograd does not see it. Several GPs with data sets of one size are evaluated
together, each at points of its own. The numbers of one do not depend on its company, to the last bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from plumbline.models.algebra import CORRELATIONS, Kernel
from plumbline.models.gp.priors import Array

LEAST_VARIANCE = 1e-12
"""Least standardised variance of f: smaller ones are rounding errors."""


@dataclass(frozen=True)
class Arrays:
    """What marginal posteriors need of m GPs with n observations each.

    Attributes:
        kernel: kernel of unit variance, the same for all.
        low, width: of the inputs, `m x 1 x d`.
        lengthscale: `m x 1 x d`, or `m x 1 x 1`.
        points: the data's inputs in lengthscales, `m x n x d`.
        norms: their squared norms, `m x 1 x n`.
        across: `-2 points'`, `m x d x n`.
        half: `s R^-T`, `m x n x n`, which maps correlations with the data to `R^-1 k`.
        inverse_root: `R^-1`, `m x n x n`.
        whitened: `R^-1 (y - constant)`, `m x n x 1`.
        a: `R^-T whitened`, `m x 1 x n`.
        outputscale, constant: prior variance and mean of f, standardised, `m x 1`.
        location, scale: mean and standard deviation of the observations, `m x 1`.
        deviation: factor of all predictive standard deviations, `m x 1`.
    """

    kernel: Kernel
    low: Array
    width: Array
    lengthscale: Array
    points: Array
    norms: Array
    across: Array
    half: Array
    inverse_root: Array
    whitened: Array
    a: Array
    outputscale: Array
    constant: Array
    location: Array
    scale: Array
    deviation: Array

    @property
    def number(self) -> int:
        """The number of GPs, m."""
        return len(self.points)

    def only(self, rows: Sequence[int]) -> "Arrays":
        """Return the GPs with numbers `rows`."""
        if list(rows) == list(range(self.number)):
            return self
        return Arrays(self.kernel, *(part[rows] for part in self._parts()))

    def _parts(self) -> list[Array]:
        return [getattr(self, field.name) for field in fields(self) if field.name != "kernel"]

    def marginal_posterior(self, X: Array) -> "ArraysPosterior":
        """Return the marginal posteriors of each f at points of its own.

        Args:
            X: `m x b x d`, in the problem's bounds.
        """
        scaled = (X - self.low) / self.width / self.lengthscale
        r2 = np.square(scaled).sum(-1, keepdims=True) + self.norms
        r2 += scaled @ self.across
        correlation, slope = CORRELATIONS[self.kernel](np.maximum(r2, 0.0, out=r2))
        half = correlation @ self.half
        variance = np.maximum(self.outputscale - np.square(half).sum(-1), LEAST_VARIANCE)
        location = self.constant + (half @ self.whitened)[..., 0]
        return ArraysPosterior(self, scaled, correlation, slope, half, location, np.sqrt(variance))


def together(parts: Sequence[Arrays]) -> Arrays:
    """Return the GPs of all parts, which have one kernel and data sets of one size."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part._parts() for part in parts), strict=True)
    return Arrays(parts[0].kernel, *(np.concatenate(column) for column in columns))


@dataclass(frozen=True)
class ArraysPosterior:
    """Marginal posteriors of m functions f at `b` points each.

    Attributes:
        processes: the GPs.
        scaled: `m x b x d`, the points in lengthscales.
        correlation: `m x b x n`, their correlations with the data.
        slope: `m x b x n`, `-2 dk/dr^2` of these.
        half: `m x b x n`, `R^-1 k`.
        location, spread: means and standard deviations of f, `m x b`, in standardised units.
    """

    processes: Arrays
    scaled: Array
    correlation: Array
    slope: Array
    half: Array
    location: Array
    spread: Array

    @property
    def mean(self) -> Array:
        """Means of f, `m x b`, in the units of the observations."""
        return self.processes.location + self.processes.scale * self.location

    @property
    def sd(self) -> Array:
        """Standard deviations of f, `m x b`, likewise."""
        return self.processes.scale * self.processes.deviation * self.spread

    def vjp(self, grad_mean: Array, grad_sd: Array) -> Array:
        """Return the gradients in the points, `m x b x d` in the problem's bounds, of functions of `mean` and `sd`.

        Args:
            grad_mean, grad_sd: `m x b`, their derivatives in them.
        """
        scale = self.processes.scale
        return self.vjp_standardised(scale * grad_mean, scale * self.processes.deviation * grad_sd)

    def vjp_standardised(self, grad_location: Array, grad_spread: Array) -> Array:
        """Return the gradients in the points, `m x b x d`, of functions of `location` and `spread`.

        With `k = k(x, U)` the mean is `k' a` and the variance `s - |R^-1 k|^2`.

        Args:
            grad_location, grad_spread: `m x b`, their derivatives in them.
        """
        grad_k = ((grad_spread / -self.spread)[..., None] * self.half) @ self.processes.inverse_root
        grad_k += grad_location[..., None] * self.processes.a
        return self.unscaled(self.vjp_covariances(grad_k))

    def vjp_covariances(self, grad_k: Array) -> Array:
        """Return the gradients in the scaled points, `m x b x d`, of functions of the prior covariances with the data.

        The derivative of `k_i` in scaled inputs is `-slope_i (x - u_i)`.

        Args:
            grad_k: `m x b x n`, their derivatives in them; overwritten.
        """
        grad_k *= self.slope
        grad_k *= self.processes.outputscale[..., None]
        gradient = grad_k @ self.processes.points
        gradient -= grad_k.sum(-1, keepdims=True) * self.scaled
        return gradient

    def unscaled(self, gradient: Array) -> Array:
        """Convert gradients in lengthscales to the problem's bounds; both `m x b x d`."""
        return gradient / self.processes.lengthscale / self.processes.width


@dataclass(frozen=True)
class GPMarginalPosterior:
    """Marginal posteriors of the f of one GP at `b` points, as tensors.

    Attributes:
        arrays: the same as arrays, with m = 1.
    """

    arrays: ArraysPosterior

    @property
    def scaled(self) -> Tensor:
        """The points in lengthscales, `b x d`."""
        return torch.from_numpy(self.arrays.scaled[0])

    @property
    def slope(self) -> Tensor:
        """`-2 dk/dr^2` of the points' correlations with the data, `b x n`."""
        return torch.from_numpy(self.arrays.slope[0])

    @property
    def half(self) -> Tensor:
        """`R^-1 k`, `b x n`."""
        return torch.from_numpy(self.arrays.half[0])

    @property
    def location(self) -> Tensor:
        """Means of f, `b`, in standardised units."""
        return torch.from_numpy(self.arrays.location[0])

    @property
    def spread(self) -> Tensor:
        """Standard deviations of f, `b`, likewise."""
        return torch.from_numpy(self.arrays.spread[0])

    @property
    def mean(self) -> Tensor:
        """Means of f, `b`, in the units of the observations."""
        return torch.from_numpy(self.arrays.mean[0])

    @property
    def sd(self) -> Tensor:
        """Standard deviations of f, `b`, likewise."""
        return torch.from_numpy(self.arrays.sd[0])

    def vjp(self, grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
        """Return the gradient in the points, `b x d` in the problem's bounds, of a function of `mean` and `sd`.

        Args:
            grad_mean, grad_sd: `b`, its derivatives in them.
        """
        return torch.from_numpy(self.arrays.vjp(grad_mean.numpy()[None], grad_sd.numpy()[None])[0])

    def vjp_standardised(self, grad_location: Tensor, grad_spread: Tensor) -> Tensor:
        """Return the gradient in the points, `b x d`, of a function of `location` and `spread`.

        Args:
            grad_location, grad_spread: `b`, its derivatives in them.
        """
        grads = grad_location.numpy()[None], grad_spread.numpy()[None]
        return torch.from_numpy(self.arrays.vjp_standardised(*grads)[0])

    def vjp_covariances(self, grad_k: Tensor) -> Tensor:
        """Return the gradient in the scaled points, `b x d`, of a function of the prior covariances with the data.

        Args:
            grad_k: `b x n`, its derivatives in them; overwritten.
        """
        return torch.from_numpy(self.arrays.vjp_covariances(grad_k.numpy()[None])[0])

    def unscaled(self, gradient: Tensor) -> Tensor:
        """Convert a gradient in lengthscales to the problem's bounds; both `b x d`."""
        return torch.from_numpy(self.arrays.unscaled(gradient.numpy()[None])[0])
