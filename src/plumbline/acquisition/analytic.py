"""Closed-form acquisition functions of one point: functions of the mean and standard deviation of f, with gradients.

Values equal BoTorch's; with BoTorch's own classes a search takes six to fifteen times as long.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
import torch
from numpy.typing import NDArray
from torch import Tensor

from plumbline.models.algebra import Numbers, namespace_of
from plumbline.models.posterior import GaussianProcess
from plumbline.spaces.with_gradient import Differentiated

Array = NDArray[np.float64]

ClosedForm = Callable[[Any, Any], tuple[Any, Any, Any]]
"""Maps means and standard deviations of f, `b`, to acquisition values and their derivatives in both, `b`.

The numbers are tensors, or arrays as in searches: see `Numbers`.
"""

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
SQRT_2, SQRT_HALF_PI = math.sqrt(2), math.sqrt(math.pi / 2)


def special_of(x: Any) -> Any:
    """Return the module with the special functions of tensors, or with those of arrays."""
    return torch.special if isinstance(x, Tensor) else scipy.special


def log_density(u: Numbers) -> Numbers:
    """Return the logarithm of the standard normal density."""
    return -0.5 * u * u - LOG_SQRT_2PI


class AnalyticAcquisition(Differentiated):
    """An acquisition function of the marginal posterior of f at a point."""

    def __init__(
        self, process: GaussianProcess, closed_form: ClosedForm, nonnegative: bool = False, unit: float = 1.0
    ) -> None:
        super().__init__(process.model)
        self.unit = unit
        self.process = process
        self.closed_form = closed_form
        self.nonnegative = nonnegative

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the acquisition values of `b x 1 x d` points, `b`, and their derivatives, `b x 1 x d`."""
        posterior = self.process.marginal_posterior(X.squeeze(-2))
        parts = self.closed_form(posterior.mean.numpy(), posterior.sd.numpy())
        value, grad_mean, grad_sd = map(torch.from_numpy, parts)
        return value, posterior.vjp(grad_mean, grad_sd).unsqueeze(-2)

    def values(self, X: Tensor) -> Tensor:
        """Return the acquisition values of `b x 1 x d` points: `b`."""
        posterior = self.process.marginal_posterior(X.squeeze(-2))
        return torch.from_numpy(self.closed_form(posterior.mean.numpy(), posterior.sd.numpy())[0])


def expected_improvement(best: Tensor) -> ClosedForm:
    """Return `E (f - best)+ = sd (phi(u) + u Phi(u))` with `u = (mean - best) / sd`; Jones et al. (1998)."""
    incumbent = float(best)

    def value(mean: Numbers, sd: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        u = (mean - incumbent) / sd
        density, chance = namespace_of(u).exp(log_density(u)), special_of(u).ndtr(u)
        return sd * (density + u * chance), chance, density

    return value


FAR_BELOW = -100.0
"""Score below which the logarithm of expected improvement is a series in the inverse square of the score."""


def log_standard_improvement(u: Array) -> Array:
    """Return `log(phi(u) + u Phi(u))`, to some twelve digits for every u; Ament et al. (2023), appendix A.1.

    Below -1 it is `log phi(u) + log(1 - t)` with `t = |u| Phi(u) / phi(u)`. Far below, `1 - t` is a small difference of
    numbers about one; its asymptotic series is `1 / u^2 - 3 / u^4 + 15 / u^6 - 105 / u^8`.
    """
    above = np.maximum(u, -1.0)
    below = np.clip(u, FAR_BELOW, -1.0)
    inverse = np.square(1 / np.minimum(u, FAR_BELOW))
    direct = np.log(np.exp(log_density(above)) + above * scipy.special.ndtr(above))
    ratio = -below * SQRT_HALF_PI * scipy.special.erfcx(-below / SQRT_2)
    series = inverse * (1 - inverse * (3 - inverse * (15 - 105 * inverse)))
    remainder = np.log(np.where(u > FAR_BELOW, 1 - ratio, series))
    return np.where(u > -1.0, direct, log_density(u) + remainder)


def log_expected_improvement(best: Tensor) -> ClosedForm:
    """Return the logarithm of expected improvement, without underflow; Ament et al. (2023)."""
    incumbent = float(best)

    def value(mean: Numbers, sd: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        u = (mean - incumbent) / sd
        xp = namespace_of(u)
        log_share = xp.asarray(log_standard_improvement(np.asarray(u)))
        grad_mean = xp.exp(special_of(u).log_ndtr(u) - log_share) / sd
        return log_share + xp.log(sd), grad_mean, xp.exp(log_density(u) - log_share) / sd

    return value


def log_probability_of_improvement(best: Tensor) -> ClosedForm:
    """Return `log Phi(u)` with `u = (mean - best) / sd`; Kushner (1964)."""
    incumbent = float(best)

    def value(mean: Numbers, sd: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        u = (mean - incumbent) / sd
        log_chance = special_of(u).log_ndtr(u)
        grad_mean = namespace_of(u).exp(log_density(u) - log_chance) / sd
        return log_chance, grad_mean, -u * grad_mean

    return value


def upper_confidence_bound(sqrt_beta: float) -> ClosedForm:
    """Return `mean + sqrt_beta sd`; Srinivas et al. (2010)."""

    def value(mean: Numbers, sd: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        one = namespace_of(mean).ones_like(mean)
        return mean + sqrt_beta * sd, one, sqrt_beta * one

    return value
