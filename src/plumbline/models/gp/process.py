"""Gaussian processes (GPs) conditioned on data: Cholesky factors, posteriors and their gradients."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from botorch.models import SingleTaskGP
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from plumbline.models.algebra import Kernel, cholesky_vjp, correlations, squared_distances
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.marginal import LEAST_VARIANCE, Arrays, GPMarginalPosterior
from plumbline.models.gp.single_task import ClosedFormGP, single_task_gp
from plumbline.models.standardisation import Standardisation, standardisation_of


@dataclass(frozen=True)
class GPJointPosterior:
    """Joint posteriors of f at `b` batches of q points.

    Attributes:
        process: the GP.
        points: marginal posteriors of all `b q` points.
        slope: `b x q x q`, `-2 dk/dr^2` of the correlations within the batches.
        half: `b x q x n`, `R^-1 k`.
        factor: `b x q x q`, the Cholesky factors of the covariances `k(X, X) - half half'`, in standardised units.
    """

    process: "GP"
    points: GPMarginalPosterior
    slope: Tensor
    half: Tensor
    factor: Tensor

    @property
    def mean(self) -> Tensor:
        """Means of f, `b x q`, in the units of the observations."""
        return self.points.mean.view(self.slope.shape[:-1])

    @property
    def root(self) -> Tensor:
        """Cholesky factors of the covariances of f, `b x q x q`, likewise."""
        return self.process.standardisation.scale * self.process.deviation * self.factor

    def vjp(self, grad_mean: Tensor, grad_root: Tensor) -> Tensor:
        """Return the gradient in the points, `b x q x d` in the problem's bounds, of a function of `mean` and `root`.

        Args:
            grad_mean: `b x q`, its derivatives in the means.
            grad_root: `b x q x q`, in the factors; entries above their diagonals are ignored.
        """
        scale = self.process.standardisation.scale
        grad_half = (scale * grad_mean).unsqueeze(-1) * self.process.whitened
        return self.vjp_standardised(grad_half, scale * self.process.deviation * grad_root)

    def vjp_standardised(self, grad_half: Tensor, grad_factor: Tensor) -> Tensor:
        """Return the gradient in the points, `b x q x d` in the problem's bounds, of a function of `half` and `factor`.

        Args:
            grad_half: `b x q x n`, its partial derivatives in `half` at fixed `factor`; overwritten.
            grad_factor: `b x q x q`, in the factors.
        """
        points, process = self.points, self.process
        grad_covariance = cholesky_vjp(self.factor, grad_factor)
        grad_half = grad_half.baddbmm_(grad_covariance, self.half, alpha=-2).flatten(0, 1)
        gradient = points.vjp_covariances(grad_half @ process.inverse_root).view(*self.slope.shape[:-1], -1)
        # Each point is in a row and in a column of the covariance, hence twice.
        weights = grad_covariance.mul_(self.slope).mul_(2 * process.at.outputscale)
        scaled = points.scaled.view(gradient.shape)
        gradient.baddbmm_(weights, scaled).addcmul_(weights.sum(-1, keepdim=True), scaled, value=-1)
        return points.unscaled(gradient)


JITTER = 1e-8
"""First jitter of a covariance without a Cholesky factor, as a share of the prior variance of f; as in GPyTorch."""


def cached(compute: Callable[[Any], Tensor]) -> cached_property[Tensor]:
    """Return a property that is computed once, outside inference mode, so that autograd may use it."""
    return cached_property(torch.inference_mode(mode=False)(compute))


@dataclass(frozen=True)
class GP:
    """A Gaussian process (GP) with a constant mean and a stationary kernel, conditioned exactly on data.

    Attributes:
        U: `n x d`, the data's inputs in the unit cube.
        y: `n`, their standardised observations.
        standardisation: transforms of inputs and observations.
        kernel: kernel of unit variance.
        at: the hyperparameters.
        deviation: factor of all predictive standard deviations of a recalibrated GP.
    """

    U: Tensor
    y: Tensor
    standardisation: Standardisation
    kernel: Kernel
    at: Hyperparameters
    deviation: float = 1.0

    @property
    def lengthscale(self) -> Tensor:
        """Lengthscales of standardised inputs, usually in the unit cube: `d`, or one for all inputs."""
        return self.at.lengthscale

    def lengthscale_in(self, bounds: Tensor) -> Tensor:
        """Return the lengthscales in units of the sides of a box, `2 x d`: `d`, or one for all inputs."""
        share = self.standardisation.width / (bounds[1] - bounds[0])
        return self.at.lengthscale if bool((share == 1).all()) else self.at.lengthscale * share

    @cached
    def noise(self) -> Tensor:
        """The noise variance, a scalar; NaN if it differs between observations."""
        return self.at.noise[0] if len(self.at.noise) == 1 else self.y.new_tensor(math.nan)

    @property
    def noise_variance(self) -> float:
        """The noise variance of forecasts, in the units of the observations."""
        return float(self.noise) * (self.standardisation.scale * self.deviation) ** 2

    @property
    def absorbed(self) -> "GP":
        """The same GP with its deviation absorbed into prior variance and noise.

        Its means are unchanged.
        """
        wider = self.deviation**2
        at = self.at._replace(outputscale=self.at.outputscale * wider, noise=self.at.noise * wider)
        return replace(self, at=at, deviation=1.0)

    @property
    def model(self) -> ProcessModel:
        """The GP as a model for BoTorch's acquisition functions that need its posterior alone."""
        return ProcessModel(self)

    def as_botorch(self) -> SingleTaskGP:
        """Return the GP as BoTorch's `SingleTaskGP`, in eval mode, with the same posterior in the problem's units.

        It can be conditioned and fantasised from, and trained on; from then on GPyTorch answers, which solves exactly
        up to 800 observations. A factor of predictive standard deviations is absorbed into prior variance and noise.
        GPyTorch's distributions raise variances below 1e-10 to it, in the units of the observations, but not
        covariances.
        """
        same = self.absorbed
        model = single_task_gp(same.U, same.y, same.standardisation, same.kernel, same.at, ClosedFormGP)
        return model.answered_by(same)

    @cached
    def scaled(self) -> Tensor:
        """The data's inputs in lengthscales, `n x d`."""
        return self.U / self.at.lengthscale

    @cached
    def root(self) -> Tensor:
        """The Cholesky factor R of `K + diag(noise)`, `n x n`.

        Raises:
            NotPSDError: there is none even with jitter.
        """
        covariance = self.prior(self.U, self.U)
        covariance.diagonal().add_(self.at.noise)
        return self.factor(covariance)

    @cached
    def inverse_root(self) -> Tensor:
        """`R^-1`, `n x n`."""
        return torch.linalg.solve_triangular(self.root, torch.eye(len(self.y)).to(self.y), upper=False)

    @cached
    def whitened(self) -> Tensor:
        """`R^-1 (y - constant)`, `n`: scores of one-step-ahead forecasts in the order of the data."""
        return self.inverse_root @ (self.y - self.at.constant)

    @cached
    def a(self) -> Tensor:
        """`(K + diag(noise))^-1 (y - constant)`, `n`."""
        return self.inverse_root.mT @ self.whitened

    @cached
    def precision(self) -> Tensor:
        """The diagonal of `(K + diag(noise))^-1`, `n`."""
        return self.inverse_root.square().sum(0)

    @cached_property
    def arrays(self) -> Arrays:
        """The GP as arrays, for searches."""
        standardisation, points, inverse_root = self.standardisation, self.scaled.numpy(), self.inverse_root.numpy()
        return Arrays(
            self.kernel,
            standardisation.low.numpy()[None, None],
            standardisation.width.numpy()[None, None],
            self.at.lengthscale.numpy()[None, None],
            points[None],
            np.square(points).sum(-1)[None, None],
            np.ascontiguousarray(-2.0 * points.T)[None],
            np.ascontiguousarray(self.at.outputscale * inverse_root.T)[None],
            np.ascontiguousarray(inverse_root)[None],
            self.whitened.numpy()[None, :, None],
            self.a.numpy()[None, None],
            *(
                np.array([[float(number)]])
                for number in (
                    self.at.outputscale,
                    self.at.constant,
                    standardisation.location,
                    standardisation.scale,
                    self.deviation,
                )
            ),
        )

    @cached
    def residuals(self) -> Tensor:
        """Observations minus posterior means of f at their inputs, `n`: `noise a`."""
        return self.at.noise * self.a

    @cached
    def forecast_variances(self) -> Tensor:
        """Variances of new observations at the data's inputs, `n`: `2 noise - noise^2 precision`."""
        return 2 * self.at.noise - self.at.noise.square() * self.precision

    def factor(self, covariance: Tensor) -> Tensor:
        """Return the Cholesky factors of standardised covariances, `batch_shape x a x a`.

        A covariance without one, such as that of a batch with a repeated point, gets a growing jitter, as in BoTorch.
        Here the jitter is a share of the prior variance of f, so that it does not depend on units.

        Raises:
            NanError, NotPSDError: a covariance has NaN entries, or no factor even with jitter.
        """
        return psd_safe_cholesky(covariance, jitter=JITTER * self.at.outputscale)

    def prior(self, A: Tensor, B: Tensor) -> Tensor:
        """Return prior covariances of f, `batch_shape x a x b`, between points of the unit cube.

        Args:
            A: `batch_shape x a x d`.
            B: `batch_shape x b x d`.
        """
        A, B = A / self.at.lengthscale, B / self.at.lengthscale
        r2 = squared_distances(A.reshape(-1, *A.shape[-2:]), B.reshape(-1, *B.shape[-2:]))
        return self.at.outputscale * correlations(r2, self.kernel)[0].reshape(*A.shape[:-1], B.shape[-2])

    def prior_with_vjp(self, A: Tensor, B: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return prior covariances of f and their vector-Jacobian product in `A`.

        With `H = grad_K * s * slope` the gradient is `(H B - diag(H 1) A) / lengthscale`, points in lengthscales.

        Args:
            A: `b x a x d`, in the unit cube.
            B: `b x k x d`, likewise.
        """
        A, B = A / self.at.lengthscale, B / self.at.lengthscale
        correlation, slope = correlations(squared_distances(A, B), self.kernel)

        def vjp(grad_K: Tensor) -> Tensor:
            H = grad_K * slope * self.at.outputscale
            return torch.addcmul(H @ B, H.sum(-1, keepdim=True), A, value=-1.0) / self.at.lengthscale

        return correlation * self.at.outputscale, vjp

    def posterior_moments(self, X: Tensor, joint: bool = True) -> tuple[Tensor, Tensor]:
        """Return posterior means of f and covariances, or variances, in the units of the observations.

        Args:
            X: `batch_shape x q x d`, in the problem's bounds.
            joint: whether to return covariances of the q points rather than variances.

        Returns:
            `batch_shape x q`, and `batch_shape x q x q` or `batch_shape x q`.
        """
        U = self.standardisation.inputs(X)
        flat = U.reshape(1, -1, U.shape[-1])
        half = (self.prior(flat, self.U.unsqueeze(0)) @ self.inverse_root.mT).reshape(*U.shape[:-1], len(self.y))
        mean = self.standardisation.location + self.standardisation.scale * (self.at.constant + half @ self.whitened)
        variance = (self.standardisation.scale * self.deviation) ** 2
        if joint:
            return mean, variance * (self.prior(U, U) - half @ half.mT)
        return mean, variance * (self.at.outputscale - half.square().sum(-1)).clamp_min(LEAST_VARIANCE)

    def marginal_posterior(self, X: Tensor) -> GPMarginalPosterior:
        """Return the marginal posteriors of f at points.

        Args:
            X: `b x d`, in the problem's bounds.
        """
        return GPMarginalPosterior(self.arrays.marginal_posterior(X.numpy()[None]))

    def joint_posterior(self, X: Tensor) -> GPJointPosterior:
        """Return the joint posteriors of f at batches of points.

        Args:
            X: `b x q x d`, in the problem's bounds.

        Raises:
            NanError, NotPSDError: a covariance has NaN entries, or no factor even with jitter.
        """
        points = self.marginal_posterior(X.flatten(0, 1))
        half, scaled = points.half.view(*X.shape[:-1], -1), points.scaled.view(X.shape)
        correlation, slope = correlations(squared_distances(scaled, scaled), self.kernel)
        covariance = torch.baddbmm(correlation, half, half.mT, beta=self.at.outputscale, alpha=-1)
        return GPJointPosterior(self, points, slope, half, self.factor(covariance))

    def condition_on_observations(self, X: Tensor, Y: Tensor) -> "GP":
        """Return the GP conditioned on more data, with the same hyperparameters and standardisation.

        Args:
            X: `k x d`, in the problem's bounds.
            Y: `k x 1`.
        """
        y = self.standardisation.outputs(Y[:, 0])
        return replace(self, U=torch.cat([self.U, self.standardisation.inputs(X)]), y=torch.cat([self.y, y]))

    def kriging_believer(self, X: Tensor) -> "GP":
        """Return the GP conditioned on its own means at points, as noisy observations: variances alone change.

        Ginsbourger et al. (2010) call this the kriging believer, Desautels et al. (2014) hallucination.

        Args:
            X: `k x d`, in the problem's bounds.
        """
        return self.condition_on_observations(X, self.marginal_posterior(X).mean.unsqueeze(-1))

    def condition_on_mean(self, X: Tensor) -> "GP":
        """Return the GP conditioned on noise-free values of f at points, equal to its posterior means there.

        Its means are unchanged. Its covariances are those given f at the points, which do not depend on the values. If
        f is `mean + L z` at the points, with L the last block of `root`, the mean elsewhere moves by `half z`, with
        the last k columns of `half`.

        Args:
            X: `k x d`, in the problem's bounds.
        """
        noise = torch.cat([self.at.noise.expand(len(self.y)), self.y.new_zeros(len(X))])
        y = torch.cat([self.y, self.marginal_posterior(X).location])
        return replace(
            self, U=torch.cat([self.U, self.standardisation.inputs(X)]), y=y, at=self.at._replace(noise=noise)
        )


def conditioned(
    X: Tensor,
    Y: Tensor,
    bounds: Tensor,
    kernel: Kernel,
    at: Hyperparameters,
    standardisation: Standardisation | None = None,
) -> GP:
    """Return a GP with known hyperparameters, conditioned on data: nothing is fitted.

    Args as for `fit_process`; the hyperparameters `at` are in standardised units.
    """
    standardisation = standardisation or standardisation_of(bounds, Y[:, 0])
    return GP(standardisation.inputs(X), standardisation.outputs(Y[:, 0]), standardisation, kernel, at)
