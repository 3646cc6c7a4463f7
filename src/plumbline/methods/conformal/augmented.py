"""An exact Gaussian process refitted on a few more observations, in closed form.

Notation: `K + s2n I = R R'`, `B = (R R')^-1`, `a = B (y - mean)`; at `q` test points `u = B k_X`, and `S = L L'` is the
predictive covariance of their observations. A label `y` enters as `z = L^-1 (y - mean)`. Everything is in the process's
standardised space. Each differentiated function has its vector-Jacobian product (VJP) beside it: a map of the gradient
of a scalar in the output to that in the input. The gradient in `C` is called `grad_C`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from plumbline.methods.conformal.small_matrices import (
    cholesky,
    diagonal_minus,
    dual,
    inner,
    squares,
    times,
    times_transpose,
)
from plumbline.models.algebra import cholesky_vjp
from plumbline.models.gp.process import GP


@dataclass(frozen=True)
class Augmented:
    """The model refitted on `q` more observations, at each of `b` batches of test points.

    Attributes:
        mean: `b x q`, predictive mean.
        root: `b x q x q`, lower Cholesky factor `L` of the predictive covariance of the observations.
        dual_root: `b x q x q`, `L^-T`.
        own_slope: `b x q x q`, `s2n L^-T`: the refitted residuals at the test points are `own_slope z`.
        slope: `b x (n + q) x q`, `s2n u L^-T` and `own_slope`: the refitted residuals at the data and at the test
            points are `intercept - slope z`, up to a sign that no score depends on.
        intercept: `(n + q) x 1`, refitted residuals far from any label: `s2n a`, and 0 at the test points.
        spare: `(n + q) x 1`, refitted variances far from any label: `2 s2n - s2n^2 B_ii`, and `2 s2n`.
        noise: the noise variance `s2n`.
        cross: `b x q x n`, prior covariances of `f` at the test points with the data.
        prior: `b x q x q` (or one row for all), prior covariances among the test points.
        constant: the prior mean.
    """

    mean: Tensor
    root: Tensor
    dual_root: Tensor
    own_slope: Tensor
    slope: Tensor
    intercept: Tensor
    spare: Tensor
    noise: Tensor
    cross: Tensor
    prior: Tensor
    constant: float

    @property
    def sd(self) -> Tensor:
        """Predictive standard deviations of the observations, `b x q`."""
        return self.root.square().sum(dim=-1).sqrt()

    @property
    def variances(self) -> Tensor:
        """The refitted predictive variances at the data and at the test points, `b x (n + q) x 1`.

        `s2n (2 - s2n A_ii)` with the augmented inverse `A`: they do not depend on the labels.
        """
        return self.spare - squares(self.slope)

    def function_mean(self, z: Tensor) -> Tensor:
        """Return the mean of `f` at the test points after refitting on labels `b x k x q`, of the same shape."""
        return self.mean.unsqueeze(-2) + times_transpose(z, self.root - self.own_slope)

    def function_root(self) -> Tensor:
        """Return a root of the covariance of `f` at the test points after refitting: `b x q x q`, for any label."""
        return cholesky(diagonal_minus(self.noise, times_transpose(self.own_slope, self.own_slope)))


CovariancesVJP = Callable[[Tensor, Tensor], Tensor]


def covariances_with_vjp(process: GP, U: Tensor) -> tuple[Tensor, Tensor, CovariancesVJP]:
    """Return prior covariances with the data and among test points, and the VJP of both in the points.

    Args:
        process: fitted, with the same noise variance for all observations.
        U: `b x q x d`, in the unit cube.

    Returns:
        `b x q x n`; `b x q x q`, or `1 x 1 x 1` where it is constant; a function of the gradients in these, the second
        one symmetric.
    """
    b, q, d = U.shape
    cross, vjp_cross = process.prior_with_vjp(U.reshape(1, b * q, d), process.U.unsqueeze(0))
    cross = cross.view(b, q, -1)
    if q == 1:
        prior = U.new_full((1, 1, 1), process.at.outputscale)
        return cross, prior, lambda grad_cross, grad_prior: vjp_cross(grad_cross.view(1, b * q, -1)).view(U.shape)
    prior, vjp_prior = process.prior_with_vjp(U, U)

    def vjp(grad_cross: Tensor, grad_prior: Tensor) -> Tensor:
        # Points enter the symmetric matrix on the left and on the right.
        return vjp_cross(grad_cross.reshape(1, b * q, -1)).view(U.shape) + 2 * vjp_prior(grad_prior)

    return cross, prior, vjp


class Cotangents(NamedTuple):
    """Gradients of a scalar in the parts of an `Augmented` other than the slope of its data; None for zero.

    Each has the shape of its part; the one in the prior is symmetric. `grad_own_slope` adds to the gradient in the
    last rows of `slope`.
    """

    grad_mean: Tensor
    grad_root: Tensor
    grad_own_slope: Tensor | None = None
    grad_dual_root: Tensor | None = None
    grad_cross: Tensor | None = None
    grad_prior: Tensor | None = None


def augment(process: GP, U: Tensor) -> Augmented:
    """Return the augmented system at test points.

    Args:
        process: fitted, with the same noise variance for all observations.
        U: `b x q x d`, in the unit cube.
    """
    return augment_with_vjp(process, U)[0]


def augment_with_vjp(process: GP, U: Tensor) -> tuple[Augmented, Callable[[Cotangents, Tensor], Tensor]]:
    """Return the augmented system at test points, and its VJP: gradients in its parts, its slope last, to the points.

    From `W = (u P, P)`, `P = s2n D`, `D = L^-T`, `L L' = k + s2n - u' k_X`, `u' = k_X' B` and `mean = k_X' a` follow
    `grad_P = u' grad_uP + grad_P`, `grad_D = s2n grad_P`, `grad_L -= D grad_D' D`, and in the cross-covariances `k_X'`
    `(grad_uP P')' B - 2 grad_LL' u' + grad_mean a'`.
    """
    cross, prior, vjp_covariances = covariances_with_vjp(process, U)
    _, q, n = cross.shape
    noise, own = process.noise, U.new_zeros(q)
    half = cross @ process.inverse_root.mT
    explained = half.square().sum(dim=-1, keepdim=True) if q == 1 else half @ half.mT
    root = cholesky(diagonal_minus(noise, explained - prior))
    dual_root = dual(root)
    own_slope = noise * dual_root
    u = (half @ process.inverse_root).mT
    system = Augmented(
        mean=process.at.constant + half @ process.whitened,
        root=root,
        dual_root=dual_root,
        own_slope=own_slope,
        slope=torch.cat([times(u, own_slope), own_slope], dim=-2),
        intercept=torch.cat([process.residuals, own]).unsqueeze(-1),
        spare=torch.cat([process.forecast_variances, own + 2 * noise]).unsqueeze(-1),
        noise=noise,
        cross=cross,
        prior=prior,
        constant=process.at.constant,
    )

    def vjp(to: Cotangents, grad_slope: Tensor) -> Tensor:
        grad_data, grad_own_slope = grad_slope.split([n, q], dim=-2)
        grad_own_slope = grad_own_slope + inner(u, grad_data)
        if to.grad_own_slope is not None:
            grad_own_slope = grad_own_slope + to.grad_own_slope
        grad_dual_root = noise * grad_own_slope
        if to.grad_dual_root is not None:
            grad_dual_root = grad_dual_root + to.grad_dual_root
        grad_root = to.grad_root - times(times_transpose(dual_root, grad_dual_root), dual_root)
        grad_square = cholesky_vjp(root, grad_root)
        # All terms of the gradient in the cross-covariances have the factor R^-1 on the right, as a' = whitened' R^-1.
        grad_half = times_transpose(grad_data, own_slope).mT @ process.inverse_root.mT
        grad_half = torch.addcmul(grad_half, to.grad_mean.unsqueeze(-1), process.whitened)
        grad_half = torch.sub(grad_half, grad_square * half if q == 1 else grad_square @ half, alpha=2)
        grad_cross = grad_half @ process.inverse_root
        if to.grad_cross is not None:
            grad_cross = grad_cross + to.grad_cross
        return vjp_covariances(grad_cross, grad_square if to.grad_prior is None else grad_square + to.grad_prior)

    return system, vjp
