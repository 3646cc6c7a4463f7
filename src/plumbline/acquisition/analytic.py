"""Closed-form acquisition functions of one point: functions of the mean and standard deviation of f, with gradients.

Values equal BoTorch's; with BoTorch's own classes a search takes six to fifteen times as long.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
import scipy.special
import torch
from torch import Tensor

from plumbline.core.numbers import Array, Numbers, namespace_of, special_of
from plumbline.models.gp.marginal import Arrays, together
from plumbline.models.gp.process import GP
from plumbline.models.posterior import GaussianProcess
from plumbline.spaces.abreast import Abreast
from plumbline.spaces.with_gradient import ClimbEvaluation, Differentiated

ClosedForm = Callable[[Any, Any], tuple[Any, Any, Any]]
"""Maps means and standard deviations of f, `b`, to acquisition values and their derivatives in both, `b`.

The numbers are tensors, or arrays as in searches: see `Numbers`.
"""


@dataclass(frozen=True)
class OfParameter:
    """A closed form with a parameter, such as the incumbent.

    Attributes:
        function: maps means, standard deviations and the parameter to what a `ClosedForm` returns.
        parameter: a number, or one for each of m functions, `m x 1`.
    """

    function: Callable[[Any, Any, Any], tuple[Any, Any, Any]]
    parameter: Any

    def __call__(self, mean: Any, sd: Any) -> tuple[Any, Any, Any]:
        """Return the values and their derivatives in both arguments."""
        return self.function(mean, sd, self.parameter)


LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
SQRT_2, SQRT_HALF_PI = math.sqrt(2), math.sqrt(math.pi / 2)


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

    @property
    def kind(self) -> Hashable:
        """The function, and the kernel and the numbers of the data and of lengthscales of the GP."""
        if not (isinstance(self.process, GP) and isinstance(self.closed_form, OfParameter)):
            return None
        return self.closed_form.function, self.process.kernel, self.process.U.shape, self.process.lengthscale.shape

    @classmethod
    def evaluation(cls, acquisitions: Sequence[Self], climbs: int) -> ClimbEvaluation:
        """Return the evaluation of acquisition functions of one kind, or of a single one."""
        if acquisitions[0].kind is None:
            return super().evaluation(acquisitions, climbs)
        functions = AnalyticFunctions.of(acquisitions)
        return Abreast(functions, len(acquisitions), climbs, functions.processes.points.shape[-1])


@dataclass(frozen=True)
class AnalyticFunctions:
    """m analytic acquisition functions of one kind.

    Attributes:
        function: maps means, standard deviations and parameters to what a `ClosedForm` returns.
        parameters: `m x 1`.
        processes: the GPs.
    """

    function: Callable[[Any, Any, Any], tuple[Any, Any, Any]]
    parameters: Array
    processes: Arrays

    @classmethod
    def of(cls, acquisitions: Sequence[AnalyticAcquisition]) -> Self:
        """Return the functions together."""
        forms = [cast(OfParameter, one.closed_form) for one in acquisitions]
        parameters = np.array([[float(form.parameter)] for form in forms])
        return cls(forms[0].function, parameters, together([cast(GP, one.process).arrays for one in acquisitions]))

    def only(self, rows: Sequence[int]) -> Self:
        """Return the functions with numbers `rows`."""
        return replace(self, parameters=self.parameters[rows], processes=self.processes.only(rows))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the values at `m x b x d` points, `m x b`, and the derivatives, `m x b x d`."""
        posterior = self.processes.marginal_posterior(X)
        value, grad_mean, grad_sd = self.function(posterior.mean, posterior.sd, self.parameters)
        return value, posterior.vjp(grad_mean, grad_sd)


def expected_improvement(best: Tensor) -> ClosedForm:
    """Return `E (f - best)+ = sd (phi(u) + u Phi(u))` with `u = (mean - best) / sd`; Jones et al. (1998)."""
    return OfParameter(_improvement, float(best))


def _improvement(mean: Numbers, sd: Numbers, best: Any) -> tuple[Numbers, Numbers, Numbers]:
    u = (mean - best) / sd
    density, chance = namespace_of(u).exp(log_density(u)), special_of(u).ndtr(u)
    return sd * (density + u * chance), chance, density


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
    return OfParameter(_log_improvement, float(best))


def _log_improvement(mean: Numbers, sd: Numbers, best: Any) -> tuple[Numbers, Numbers, Numbers]:
    u = (mean - best) / sd
    xp = namespace_of(u)
    log_share = xp.asarray(log_standard_improvement(np.asarray(u)))
    grad_mean = xp.exp(special_of(u).log_ndtr(u) - log_share) / sd
    return log_share + xp.log(sd), grad_mean, xp.exp(log_density(u) - log_share) / sd


def log_probability_of_improvement(best: Tensor) -> ClosedForm:
    """Return `log Phi(u)` with `u = (mean - best) / sd`; Kushner (1964)."""
    return OfParameter(_log_probability, float(best))


def _log_probability(mean: Numbers, sd: Numbers, best: Any) -> tuple[Numbers, Numbers, Numbers]:
    u = (mean - best) / sd
    log_chance = special_of(u).log_ndtr(u)
    grad_mean = namespace_of(u).exp(log_density(u) - log_chance) / sd
    return log_chance, grad_mean, -u * grad_mean


def upper_confidence_bound(sqrt_beta: float) -> ClosedForm:
    """Return `mean + sqrt_beta sd`; Srinivas et al. (2010)."""
    return OfParameter(_upper_bound, sqrt_beta)


def _upper_bound(mean: Numbers, sd: Numbers, sqrt_beta: Any) -> tuple[Numbers, Numbers, Numbers]:
    one = namespace_of(mean).ones_like(mean)
    return mean + sqrt_beta * sd, one, sqrt_beta * one
