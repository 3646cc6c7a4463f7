"""Marginal and joint posteriors of an SVGP, with hand-written gradients.

Let `k = k(Z, x)`, `L L' = K(Z, Z)` and `v ~ N(mean, C C')` for inducing values `L v`. The posterior of f at x is a
function of `A = L^-1 k` and `W = C' A`. Its mean is `constant + mean' A`, its variance `s + jitter - |A|^2 + |W|^2`.
One matrix maps `k` to `A`, `W` and `mean' A`, and its transpose maps gradients back to `k`.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from botorch.models.model import Model
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from plumbline.models.algebra import cholesky_vjp, correlations, squared_distances, squared_norms
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.svgp.cross_covariance import JITTER
from plumbline.models.svgp.process import SVGP


@dataclass(frozen=True)
class SVGPPosterior:
    """Posteriors of f, or of its observations, under an SVGP.

    Attributes:
        process: trained SVGP.
        noisy: whether posteriors are those of observations.
    """

    process: SVGP
    noisy: bool = False

    @property
    def model(self) -> Model:
        """The SVGP as a BoTorch model."""
        return ProcessModel(self.process, noisy=self.noisy)

    @cached_property
    def outputscale(self) -> Tensor:
        """Prior variance of f, `1`, in standardised units."""
        return self.process.parameters.outputscale.detach()

    @cached_property
    def own(self) -> Tensor:
        """Independent variance of each point, `1`: the jitter, and the noise of an observation."""
        return JITTER + self.noisy * self.process.parameters.noise.detach()

    @cached_property
    def lengthscale(self) -> Tensor:
        """Lengthscale of all standardised inputs, `1`."""
        return self.process.parameters.lengthscale.detach()

    @cached_property
    def scaled(self) -> Tensor:
        """The inducing points in lengthscales, `1 x m x d`."""
        return self.process.parameters.inducing.detach() / self.lengthscale

    @cached_property
    def norms(self) -> Tensor:
        """Squared norms of the inducing points in lengthscales, `1 x m`."""
        return squared_norms(self.scaled)

    @cached_property
    def constant(self) -> Tensor:
        """Prior mean, `1`, in standardised units."""
        return self.process.parameters.constant.detach()

    def marginal_posterior(self, X: Tensor) -> "SVGPMarginal":
        """Return the marginal posteriors at points.

        Args:
            X: `b x d`, in the problem's bounds.
        """
        m = self.process.layout.m
        scaled = self.process.standardisation.inputs(X) / self.lengthscale
        r2 = squared_distances(self.scaled, scaled.unsqueeze(0), self.norms).squeeze(0).mT
        correlation, slope = correlations(r2, self.process.kernel)
        projected = (correlation * self.outputscale) @ self.process.projection.mT
        explained = projected[:, m : 2 * m].square().sum(-1) - projected[:, :m].square().sum(-1)
        variance = (self.outputscale + self.own + explained).clamp_min(JITTER)
        return SVGPMarginal(self, scaled, slope, projected, self.constant + projected[:, -1], variance.sqrt())

    def joint_posterior(self, X: Tensor) -> "SVGPJoint":
        """Return the joint posteriors at batches of points.

        Args:
            X: `b x q x d`, in the problem's bounds.

        Raises:
            NanError, NotPSDError: a covariance has NaN entries, or no factor even with jitter.
        """
        m = self.process.layout.m
        points = self.marginal_posterior(X.flatten(0, 1))
        scaled, projected = points.scaled.view(X.shape), points.projected.view(*X.shape[:-1], -1)
        A, W = projected[..., :m], projected[..., m : 2 * m]
        correlation, slope = correlations(squared_distances(scaled, scaled), self.process.kernel)
        covariance = self.outputscale * correlation
        covariance.diagonal(dim1=-2, dim2=-1).add_(self.own)
        covariance.baddbmm_(A, A.mT, alpha=-1).baddbmm_(W, W.mT)
        factor = psd_safe_cholesky(covariance, jitter=JITTER * float(self.outputscale))
        return SVGPJoint(points, slope, A, W, factor)


@dataclass(frozen=True)
class SVGPMarginal:
    """Marginal posteriors of an SVGP at `b` points.

    Attributes:
        of: the SVGP, with cached factors.
        scaled: `b x d`, the points in lengthscales.
        slope: `b x m`, `-2 dk/dr^2` of their correlations with the inducing points.
        projected: `b x (2 m + 1)`, the projections `A`, `W` and `mean' A`.
        location, spread: means and standard deviations, `b`, in standardised units.
    """

    of: SVGPPosterior
    scaled: Tensor
    slope: Tensor
    projected: Tensor
    location: Tensor
    spread: Tensor

    @property
    def mean(self) -> Tensor:
        """Means, `b`, in the units of the observations."""
        standardisation = self.of.process.standardisation
        return standardisation.location + standardisation.scale * self.location

    @property
    def sd(self) -> Tensor:
        """Standard deviations, `b`, likewise."""
        return self.of.process.standardisation.scale * self.spread

    def vjp(self, grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
        """Return the gradient in the points, `b x d` in the problem's bounds, of a function of `mean` and `sd`.

        Args:
            grad_mean, grad_sd: `b`, its derivatives in them.
        """
        scale = self.of.process.standardisation.scale
        grad_projected = self.through_spread(scale * grad_sd)
        grad_projected[:, -1] = scale * grad_mean
        return self.unscaled(self.vjp_projected(grad_projected))

    def through_spread(self, grad_spread: Tensor) -> Tensor:
        """Return derivatives in `projected` of a function of `spread`, `b`: `A` lowers the variance, `W` raises it."""
        grad_projected = self.projected * (grad_spread / self.spread).unsqueeze(-1)
        grad_projected[:, : self.of.process.layout.m].neg_()
        grad_projected[:, -1] = 0.0
        return grad_projected

    def vjp_projected(self, grad_projected: Tensor) -> Tensor:
        """Return the gradient in the scaled points, `b x d`, of a function of `projected`.

        Args:
            grad_projected: `b x (2 m + 1)`, its derivatives.
        """
        weights = (grad_projected @ self.of.process.projection).mul_(self.slope).mul_(self.of.outputscale)
        gradient = weights @ self.of.scaled.squeeze(0)
        return gradient.addcmul_(weights.sum(-1, keepdim=True), self.scaled, value=-1)

    def unscaled(self, gradient: Tensor) -> Tensor:
        """Convert a gradient in lengthscales to the problem's bounds; both `b x d`."""
        return gradient / (self.of.lengthscale * self.of.process.standardisation.width)


@dataclass(frozen=True)
class SVGPJoint:
    """Joint posteriors of an SVGP at `b` batches of q points.

    Attributes:
        points: marginal posteriors of all `b q` points.
        slope: `b x q x q`, `-2 dk/dr^2` of the correlations within the batches.
        A, W: `b x q x m`, of the batches.
        factor: `b x q x q`, the Cholesky factors of the covariances, in standardised units.
    """

    points: SVGPMarginal
    slope: Tensor
    A: Tensor
    W: Tensor
    factor: Tensor

    @property
    def mean(self) -> Tensor:
        """Means, `b x q`, in the units of the observations."""
        return self.points.mean.view(self.slope.shape[:-1])

    @property
    def root(self) -> Tensor:
        """Cholesky factors of the covariances, `b x q x q`, likewise."""
        return self.points.of.process.standardisation.scale * self.factor

    def vjp(self, grad_mean: Tensor, grad_root: Tensor) -> Tensor:
        """Return the gradient in the points, `b x q x d` in the problem's bounds, of a function of `mean` and `root`.

        Args:
            grad_mean: `b x q`, its derivatives in the means.
            grad_root: `b x q x q`, in the factors; entries above their diagonals are ignored.
        """
        points, scale = self.points, self.points.of.process.standardisation.scale
        grad_covariance = cholesky_vjp(self.factor, scale * grad_root)
        # Each point is in a row and in a column of the covariance, hence twice.
        twice = 2 * grad_covariance
        grad_projected = torch.cat([-(twice @ self.A), twice @ self.W, (scale * grad_mean).unsqueeze(-1)], -1)
        gradient = points.vjp_projected(grad_projected.flatten(0, 1)).view(*self.slope.shape[:-1], -1)
        weights = twice.mul_(self.slope).mul_(points.of.outputscale)
        scaled = points.scaled.view(gradient.shape)
        gradient.baddbmm_(weights, scaled).addcmul_(weights.sum(-1, keepdim=True), scaled, value=-1)
        return points.unscaled(gradient)
