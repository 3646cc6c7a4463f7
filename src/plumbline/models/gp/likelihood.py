"""The marginal likelihood of a GP with its gradient, and its (penalised) maximum.

docs/methods/gp.md derives the formulas. GPyTorch's kernels and automatic differentiation take six times the time around
matrices of some hundred rows.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from botorch.exceptions.errors import ModelFittingError
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NanError, NotPSDError
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor

from plumbline.models.algebra import CORRELATIONS, Kernel, squared_distances
from plumbline.models.gp.priors import ANY, Array, Hyperparameter

ATTEMPTS = 5
"""Greatest number of starts of the optimiser, the first included; as in BoTorch."""

LOG_2PI = math.log(2 * math.pi)


class Hyperparameters(NamedTuple):
    """Hyperparameters of a GP with a constant mean, in standardised units.

    Attributes:
        constant: the prior mean.
        noise: noise variance of each observation, `n`, or of all, `1`.
        outputscale: prior variance of f.
        lengthscale: lengthscales, `d`, or one for all inputs, `1`.
    """

    constant: float
    noise: Tensor
    outputscale: float
    lengthscale: Tensor


Values = list[tuple[Array, Array]]
"""Noise, outputscale and lengthscales, and their derivatives in the raw parameters."""

_NONE = torch.empty(0, dtype=torch.float64)

NOTHING_KNOWN = Hyperparameters(math.nan, _NONE, 1.0, _NONE)
"""Known hyperparameters where only the outputscale, one, is known."""


@dataclass(frozen=True)
class Sample:
    """A data set whose likelihood is evaluated at many hyperparameters.

    Attributes:
        X: `n x d`.
        y: `n`.
    """

    X: Tensor
    y: Tensor

    @cached_property
    def centred(self) -> tuple[Tensor, Tensor]:
        """The points minus their mean, which avoids cancellation, and the squares of their coordinates."""
        X = self.X - self.X.mean(0)
        return X, X.square()

    def log_likelihood(self, at: Hyperparameters, kernel: Kernel) -> tuple[float, Hyperparameters]:
        """Return `log N(y; constant, K + diag(noise))` and its gradient; Rasmussen & Williams (2006), eq. 5.8 and 5.9.

        With `A = K + diag(noise)`, `a = A^-1 (y - constant)` and `G = (a a' - A^-1) / 2` the derivative in A is G.
        The derivative in a lengthscale is `sum_ik P_ik (x_ij - x_kj)^2 / l_j^3` with `P = G * -2 dk/dr^2`. Expanded
        squares need two matrix products in place of n^2 d differences.

        Args:
            at: the hyperparameters.
            kernel: kernel of unit variance.

        Raises:
            NanError, NotPSDError: the covariance has NaN entries, or no Cholesky factor even with jitter.
        """
        (X, squares), y = self.centred, self.y
        scaled = (X / at.lengthscale).unsqueeze(0)
        r2 = squared_distances(scaled, scaled)[0].fill_diagonal_(0.0)
        correlation, slope = CORRELATIONS[kernel](r2)
        covariance = correlation * at.outputscale
        covariance.diagonal().add_(at.noise)
        L, broken = torch.linalg.cholesky_ex(covariance)
        if broken:
            L = psd_safe_cholesky(covariance)
        inverse = torch.cholesky_inverse(L)
        residual = y - at.constant
        a = inverse @ residual
        value = -0.5 * (torch.dot(residual, a).item() + len(y) * LOG_2PI) - L.diagonal().log().sum().item()
        G = torch.addr(inverse, a, a, beta=-0.5, alpha=0.5)
        grad_scale = torch.dot(G.mT.reshape(-1), correlation.view(-1)).item()
        grad_noise = G.diagonal()
        grad_noise = grad_noise.clone() if len(at.noise) > 1 else grad_noise.sum(0, keepdim=True)
        P = G.mul_(slope)
        grad_squares = (P.sum(0) @ squares - (X * (P @ X)).sum(0)).mul_(2 * at.outputscale)
        if len(at.lengthscale) < len(grad_squares):
            grad_squares = grad_squares.sum(0, keepdim=True)
        return value, Hyperparameters(a.sum().item(), grad_noise, grad_scale, grad_squares / at.lengthscale**3)


@dataclass(frozen=True)
class Unknowns:
    """The hyperparameters that are fitted; one of size 0 is known.

    Attributes:
        noise, outputscale, lengthscale: the positive hyperparameters.
        known: values of the known hyperparameters.
        constant: whether the prior mean is fitted; else it is zero.
    """

    noise: Hyperparameter
    outputscale: Hyperparameter
    lengthscale: Hyperparameter
    known: Hyperparameters
    constant: bool = True

    @property
    def parts(self) -> tuple[Hyperparameter, Hyperparameter, Hyperparameter]:
        """The positive hyperparameters in the order of their raw parameters, which follow the prior mean."""
        return self.noise, self.outputscale, self.lengthscale

    def start(self) -> Array:
        """Return the raw parameters of the first start: those of GPyTorch's modules."""
        return np.concatenate([[0.0], *(part.start() for part in self.parts)])

    def another_start(self, generator: np.random.Generator) -> Array:
        """Return random raw parameters to restart from."""
        return np.concatenate([[0.0], *(part.another_start(generator) for part in self.parts)])

    def bounds(self) -> list[tuple[float, float]]:
        """Return the bounds of each raw parameter."""
        return [
            ANY if self.constant else (0.0, 0.0),
            *(part.transform.range for part in self.parts for _ in range(part.size)),
        ]

    @cached_property
    def places(self) -> list[slice]:
        """Slices of the raw parameters of each part."""
        ends = np.cumsum([1, *(part.size for part in self.parts)]).tolist()
        return [slice(start, end) for start, end in pairwise(ends)]

    def values(self, raw: Array) -> Hyperparameters:
        """Return the hyperparameters of raw parameters."""
        return self._hyperparameters(raw, self.positive(raw))

    def penalised(self, raw: Array, sample: Sample, kernel: Kernel) -> tuple[float, Array]:
        """Return the penalised log likelihood (priors added) per datum, and its gradient in the raw parameters."""
        positive = self.positive(raw)
        value, grad = sample.log_likelihood(self._hyperparameters(raw, positive), kernel)
        derivatives = grad.noise.numpy(), np.array([grad.outputscale]), grad.lengthscale.numpy()
        penalised, gradient = self.with_priors(np.array(value), np.array(grad.constant), derivatives, positive)
        return float(penalised) / len(sample.y), gradient / len(sample.y)

    def positive(self, raw: Array) -> Values:
        """Return each part's hyperparameters at raw parameters (`... x k`) and their derivatives; empty where known."""
        return [part.transform.value(raw[..., place]) for part, place in zip(self.parts, self.places, strict=True)]

    def with_priors(
        self, value: Array, grad_constant: Array, derivatives: tuple[Array, Array, Array], positive: Values
    ) -> tuple[Array, Array]:
        """Return penalised log likelihoods, `...`, and their gradients in the raw parameters, `... x k`.

        Args:
            value: log likelihoods, `...`.
            grad_constant: their derivatives in the prior means, `...`.
            derivatives: their derivatives in noise, outputscale and lengthscales; ignored where these are known.
            positive: the result of `positive`.
        """
        gradient = np.empty((*value.shape, self.places[-1].stop))
        gradient[..., 0] = grad_constant
        for part, place, (number, slope), grad in zip(self.parts, self.places, positive, derivatives, strict=True):
            if part.size:
                if part.prior is not None:
                    density, score = part.prior.log_density(number)
                    value = value + density.sum(-1)
                    grad = grad + score
                gradient[..., place] = grad * slope
        return value, gradient

    def _hyperparameters(self, raw: Array, positive: Values) -> Hyperparameters:
        (noise, _), (outputscale, _), (lengthscale, _) = positive
        return Hyperparameters(
            float(raw[0]),
            torch.from_numpy(noise) if self.noise.size else self.known.noise,
            float(outputscale[0]) if self.outputscale.size else self.known.outputscale,
            torch.from_numpy(lengthscale) if self.lengthscale.size else self.known.lengthscale,
        )


Objective = Callable[[Array], tuple[float, Array]]
"""Maps raw parameters to a value and its gradient; raises NanError or NotPSDError where it is undefined."""


def maximise(objective: Objective, unknowns: Unknowns, generator: np.random.Generator) -> tuple[Array, list[str]]:
    """Return the raw parameters of a (penalised) maximum, and the messages of failed attempts.

    L-BFGS-B starts at GPyTorch's initial values. Where it stops without convergence it restarts at draws of the priors,
    as in BoTorch. If no attempt converges, the best end point is returned.

    Args:
        objective: function to maximise.
        unknowns: the fitted hyperparameters.
        generator: generator of the restarts.

    Raises:
        ModelFittingError: the objective is NaN or infinite at the end of every attempt.
    """

    def loss(raw: Array) -> tuple[float, Array]:
        try:
            value, gradient = objective(raw)
        except (NanError, NotPSDError):
            return math.nan, np.full_like(raw, math.nan)
        return -value, -gradient

    ends: list[OptimizeResult] = []
    bounds = unknowns.bounds()
    for attempt in range(ATTEMPTS):
        raw = unknowns.start() if attempt == 0 else unknowns.another_start(generator)
        end = minimize(loss, raw, jac=True, method="L-BFGS-B", bounds=bounds)
        ends.append(end)
        if end.success and math.isfinite(end.fun):
            return end.x, [str(other.message) for other in ends[:-1]]
    finite = [end for end in ends if math.isfinite(end.fun)]
    if not finite:
        raise ModelFittingError("the marginal likelihood is NaN or infinite from each of the optimiser's starts")
    return min(finite, key=lambda end: float(end.fun)).x, [str(end.message) for end in ends]
