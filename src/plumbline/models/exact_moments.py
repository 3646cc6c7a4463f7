"""What an exact Gaussian process says of points and of batches, with gradients by hand; docs/exact.md derives them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from plumbline.models.whitened import cholesky_pull_back

if TYPE_CHECKING:
    from plumbline.models.exact_process import ExactProcess


@dataclass(frozen=True)
class PointMoments:
    """What a process says of f at `b` points, each on its own.

    Attributes:
        process: whose they are.
        scaled: `b x d`, the points in lengthscales.
        slope: `b x n`, `-2 dk/dr^2` of their correlations with the data.
        half: `b x n`, `R^-1 k`.
        location, spread: means and standard deviations of f, `b`, in standardised units.
    """

    process: "ExactProcess"
    scaled: Tensor
    slope: Tensor
    half: Tensor
    location: Tensor
    spread: Tensor

    @property
    def mean(self) -> Tensor:
        """Means of f, `b`, in the units of the observations."""
        units = self.process.units
        return units.location + units.scale * self.location

    @property
    def sd(self) -> Tensor:
        """Standard deviations of f, `b`, likewise."""
        return self.process.units.scale * self.process.deviation * self.spread

    def pull_back(self, to_mean: Tensor, to_sd: Tensor) -> Tensor:
        """Return the gradient in the points, `b x d` in the problem's bounds, of a function of `mean` and `sd`.

        Args:
            to_mean, to_sd: `b`, its derivatives in them.
        """
        scale = self.process.units.scale
        return self.pull_back_standardised(scale * to_mean, scale * self.process.deviation * to_sd)

    def pull_back_standardised(self, to_location: Tensor, to_spread: Tensor) -> Tensor:
        """Return the same of a function of `location` and `spread`.

        With `k = k(x, U)` the mean is `k' a` and the variance `s - |R^-1 k|^2`; the derivative of `k_i` in scaled
        inputs is `-slope_i (x - u_i)`.

        Args:
            to_location, to_spread: `b`, its derivatives in them.
        """
        to_half = (-to_spread / self.spread).unsqueeze(-1) * self.half
        to_k = torch.addr(to_half @ self.process.inverse_root, to_location, self.process.a)
        return self.unscaled(self.pull_back_covariances(to_k))

    def pull_back_covariances(self, to_k: Tensor) -> Tensor:
        """Return the gradient in the scaled points, `b x d`, of a function of the prior covariances with the data.

        Args:
            to_k: `b x n`, its derivatives in them; overwritten.
        """
        weights = to_k.mul_(self.slope).mul_(self.process.at.outputscale)
        return weights @ self.process.scaled - weights.sum(-1, keepdim=True) * self.scaled

    def unscaled(self, gradient: Tensor) -> Tensor:
        """Return a gradient in the problem's bounds of one in lengthscales; both `b x d`."""
        return gradient / (self.process.at.lengthscale * self.process.units.width)


@dataclass(frozen=True)
class JointMoments:
    """What a process says of f at `b` batches of q points.

    Attributes:
        points: of all of them, `b q`, each on its own.
        slope: `b x q x q`, `-2 dk/dr^2` of the correlations within the batches.
        half: `b x q x n`, `R^-1 k`.
        factor: `b x q x q`, the Cholesky factors of the covariances `k(X, X) - half half'`, in standardised units.
    """

    points: PointMoments
    slope: Tensor
    half: Tensor
    factor: Tensor

    @property
    def process(self) -> "ExactProcess":
        """Whose they are."""
        return self.points.process

    @property
    def mean(self) -> Tensor:
        """Means of f, `b x q`, in the units of the observations."""
        return self.points.mean.view(self.slope.shape[:-1])

    @property
    def root(self) -> Tensor:
        """Cholesky factors of the covariances of f, `b x q x q`, likewise."""
        return self.process.units.scale * self.process.deviation * self.factor

    def pull_back(self, to_mean: Tensor, to_root: Tensor) -> Tensor:
        """Return the gradient in the points, `b x q x d` in the problem's bounds, of a function of `mean` and `root`.

        Args:
            to_mean: `b x q`, its derivatives in the means.
            to_root: `b x q x q`, in the factors; what is above their diagonals does not count.
        """
        scale = self.process.units.scale
        to_half = (scale * to_mean).unsqueeze(-1) * self.process.whitened
        return self.pull_back_standardised(to_half, scale * self.process.deviation * to_root)

    def pull_back_standardised(self, to_half: Tensor, to_factor: Tensor) -> Tensor:
        """Return the same of a function of `half` and `factor`.

        Args:
            to_half: `b x q x n`, its derivatives in `half` itself: not by way of `factor`; overwritten.
            to_factor: `b x q x q`, in the factors.
        """
        points, process = self.points, self.process
        to_covariance = cholesky_pull_back(self.factor, to_factor)
        to_half = to_half.baddbmm_(to_covariance, self.half, alpha=-2).flatten(0, 1)
        gradient = points.pull_back_covariances(to_half @ process.inverse_root).view(*self.slope.shape[:-1], -1)
        # Each point is in a row and in a column of the covariance, hence twice.
        weights = to_covariance.mul_(self.slope).mul_(2 * process.at.outputscale)
        scaled = points.scaled.view(gradient.shape)
        gradient.baddbmm_(weights, scaled).addcmul_(weights.sum(-1, keepdim=True), scaled, value=-1)
        return points.unscaled(gradient)
