"""Gaussian processes with input-dependent noise, estimated from replicated observations.

The model is two GPs, fitted in turn. A GP of the log noise variance is conditioned on the sample variances of
replicates. A GP of the function is conditioned on the means of replicates, with the noise that the first GP predicts
("most likely" noise, Kersting et al. 2007; from replicates, Ankenman et al. 2010).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.models.gp.process import GP
from plumbline.models.standardisation import standardisation_of

VARIANCE_FLOOR = 1e-5
"""Least noise variance, in units of the variance of the observations: replicates of a noise-free objective agree."""

LEAST_SPREAD = 1.0
"""Least prior standard deviation of the log noise variance.

It is about the sampling error of four replicates (trigamma(3/2) = 0.93). Sample variances that differ by less do not
contradict noise that varies this much where there are no replicates.
"""


@dataclass(frozen=True)
class Groups:
    """Observations by location.

    Attributes:
        X: `g x d` distinct locations, in lexicographic order.
        size: `g` numbers of observations.
        mean: `g` sample means.
        variance: `g` unbiased sample variances; NaN where there is one observation.
    """

    X: Tensor
    size: Tensor
    mean: Tensor
    variance: Tensor

    @property
    def replicated(self) -> Tensor:
        """Mask of the groups with two observations or more: `g` booleans."""
        return self.size >= 2


def group(X: Tensor, Y: Tensor) -> Groups:
    """Return the observations `Y` (`n x 1`) grouped by exactly equal rows of `X` (`n x d`)."""
    places, index = torch.unique(X, dim=0, return_inverse=True)
    y = Y[:, 0]
    zeros = torch.zeros(len(places), dtype=y.dtype)
    size = zeros.index_add(0, index, torch.ones_like(y))
    mean = zeros.index_add(0, index, y) / size
    squares = zeros.index_add(0, index, (y - mean[index]).square())
    return Groups(places, size, mean, torch.where(size >= 2, squares / (size - 1), torch.nan))


def log_variance_estimate(variance: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Return an unbiased estimate of the log noise variance, and the variance of the estimate.

    With Gaussian noise nu s^2 / sigma^2 is chi-square with nu = size - 1 degrees of freedom, hence
    `E log s^2 = log sigma^2 + psi(nu / 2) - log(nu / 2)` and `Var log s^2 = psi'(nu / 2)`; Bartlett & Kendall (1946).

    Args:
        variance: `g` sample variances, positive.
        size: `g` numbers of observations, two or more.

    Returns:
        Two tensors of shape `g`.
    """
    half = (size - 1) / 2
    return variance.log() - torch.digamma(half) + half.log(), torch.polygamma(1, half)


@dataclass(frozen=True)
class HeteroscedasticGP:
    """A Gaussian process of the function and one of the logarithm of its noise variance.

    Attributes:
        mean: the GP of the function.
        log_noise: the GP of the log noise variance; None where the noise is assumed constant.
        constant: the noise variance where it is assumed constant.
    """

    mean: GP
    log_noise: GP | None
    constant: float

    def noise_variance(self, X: Tensor, deviations: float = 0.0) -> Tensor:
        """Return the noise variance at `X`: `... x d` in, `...` out.

        It is `exp(m + deviations * s)` with the mean m and standard deviation s of the log noise variance: the median
        at 0, confidence bounds elsewhere. Where the noise is assumed constant the bounds coincide.
        """
        if self.log_noise is None:
            return X.new_full(X.shape[:-1], self.constant)
        mean, variance = self.log_noise.posterior_moments(X.unsqueeze(-2), joint=False)
        return (mean + deviations * variance.sqrt()).squeeze(-1).exp()

    def noise_variance_lower(self, X: Tensor, sqrt_beta: float) -> Tensor:
        """Return the lower confidence bound of the noise variance at `X`: `... x d` in, `...` out."""
        return self.noise_variance(X, -sqrt_beta)


def fit_heteroscedastic(X: Tensor, Y: Tensor, bounds: Tensor, options: ModelOptions) -> HeteroscedasticGP:
    """Return the GPs of the function and of its noise.

    Fewer than two replicated locations do not show how the noise varies. The model is then the homoscedastic GP of all
    observations, whose noise variance is fitted to replicates and residuals alike.

    Args:
        X: `n x d`, in the problem's bounds; rows that are exactly equal are replicates.
        Y: `n x 1`.
        bounds: `2 x d`.
        options: kernel and priors of both GPs.

    Raises:
        botorch.exceptions.ModelFittingError: the likelihood is NaN or infinite at the end of every attempt.
        PlumblineError: observations too large or too small to be squared.
    """
    groups = group(X, Y)
    if groups.replicated.sum() < 2:
        process = fit_process(X, Y, bounds, options)
        return HeteroscedasticGP(process, None, process.noise_variance)
    least = VARIANCE_FLOOR * (Y.var().item() or 1.0)
    log_noise = _fit_log_noise(groups, least, bounds, options)
    noise = log_noise.posterior_moments(groups.X, joint=False)[0].exp()
    known = (noise / groups.size).clamp_min(least)
    mean = fit_process(groups.X, groups.mean.unsqueeze(-1), bounds, options, known)
    return HeteroscedasticGP(mean, log_noise, float("nan"))


def _fit_log_noise(groups: Groups, least: float, bounds: Tensor, options: ModelOptions) -> GP:
    """Return the GP of the log noise variance, fitted to the groups with replicates."""
    some = groups.replicated
    estimate, error = log_variance_estimate(groups.variance[some].clamp_min(least), groups.size[some])
    standardisation = standardisation_of(options.box(bounds), estimate, LEAST_SPREAD)
    return fit_process(groups.X[some], estimate.unsqueeze(-1), bounds, options, error, standardisation)
