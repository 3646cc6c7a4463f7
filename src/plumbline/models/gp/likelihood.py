"""The marginal likelihood of an exact Gaussian process with its gradient, and its (penalised) maximum.

docs/exact.md derives the formulas. GPyTorch's kernels and automatic differentiation take six times the time around
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
"""Starts of the optimiser at most, the first included; as BoTorch's."""

LOG_2PI = math.log(2 * math.pi)


class Hyperparameters(NamedTuple):
    """Of a process with a constant mean, in standardised units.

    Attributes:
        constant: the prior mean.
        noise: variance of each observation, `n`, or one for all, `1`.
        outputscale: prior variance of f.
        lengthscale: `d`, or one for all inputs, `1`.
    """

    constant: float
    noise: Tensor
    outputscale: float
    lengthscale: Tensor


Written = list[tuple[Array, Array]]
"""Noise, outputscale and lengthscales, and their derivatives in the real numbers that they are written as."""

_NONE = torch.empty(0, dtype=torch.float64)

NOTHING_KNOWN = Hyperparameters(math.nan, _NONE, 1.0, _NONE)
"""The values of hyperparameters that are known, where none is but an outputscale of one."""


@dataclass(frozen=True)
class Sample:
    """Data whose likelihood is wanted at many hyperparameters.

    Attributes:
        X: `n x d`.
        y: `n`.
    """

    X: Tensor
    y: Tensor

    @cached_property
    def centred(self) -> tuple[Tensor, Tensor]:
        """The points about their mean, which keeps digits, and the squares of their coordinates."""
        X = self.X - self.X.mean(0)
        return X, X.square()

    def log_likelihood(self, at: Hyperparameters, kernel: Kernel) -> tuple[float, Hyperparameters]:
        """Return `log N(y; constant, K + diag(noise))` and its gradient; Rasmussen & Williams (2006), eq. 5.8 and 5.9.

        With `A = K + diag(noise)`, `a = A^-1 (y - constant)` and `G = (a a' - A^-1) / 2` the derivative in A is G.
        That in a lengthscale is `sum_ik P_ik (x_ij - x_kj)^2 / l_j^3` with `P = G * -2 dk/dr^2`, whose squares are
        multiplied out: two matrix products in place of n^2 d differences.

        Args:
            at: where.
            kernel: of unit variance.

        Raises:
            NanError, NotPSDError: the covariance is no number, or has no Cholesky factor, not even with jitter.
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
    """What is fitted; a hyperparameter of size 0 is known.

    Attributes:
        noise, outputscale, lengthscale: of the process.
        known: the values of those that are known.
        constant: whether the prior mean is fitted; else it is zero.
    """

    noise: Hyperparameter
    outputscale: Hyperparameter
    lengthscale: Hyperparameter
    known: Hyperparameters
    constant: bool = True

    @property
    def parts(self) -> tuple[Hyperparameter, Hyperparameter, Hyperparameter]:
        """The hyperparameters in the order of their real numbers, which come after the prior mean."""
        return self.noise, self.outputscale, self.lengthscale

    def start(self) -> Array:
        """Return the real numbers that fitting begins with: those of GPyTorch's modules."""
        return np.concatenate([[0.0], *(part.start() for part in self.parts)])

    def another_start(self, generator: np.random.Generator) -> Array:
        """Return others."""
        return np.concatenate([[0.0], *(part.another_start(generator) for part in self.parts)])

    def bounds(self) -> list[tuple[float, float]]:
        """Return the least and the greatest of each real number."""
        return [
            ANY if self.constant else (0.0, 0.0),
            *(part.written.range for part in self.parts for _ in range(part.size)),
        ]

    @cached_property
    def places(self) -> list[slice]:
        """Where the real numbers of each are."""
        ends = np.cumsum([1, *(part.size for part in self.parts)]).tolist()
        return [slice(start, end) for start, end in pairwise(ends)]

    def values(self, raw: Array) -> Hyperparameters:
        """Return the hyperparameters of real numbers."""
        return self._hyperparameters(raw, self.written(raw))

    def penalised(self, raw: Array, sample: Sample, kernel: Kernel) -> tuple[float, Array]:
        """Return the logarithms of likelihood and priors per datum, and the gradient in the real numbers."""
        written = self.written(raw)
        value, to = sample.log_likelihood(self._hyperparameters(raw, written), kernel)
        derivatives = to.noise.numpy(), np.array([to.outputscale]), to.lengthscale.numpy()
        found, gradient = self.with_priors(np.array(value), np.array(to.constant), derivatives, written)
        return float(found) / len(sample.y), gradient / len(sample.y)

    def written(self, raw: Array) -> Written:
        """Return the positive numbers of each part, which real ones (`... x k`) stand for; empty where it is known."""
        return [part.written.value(raw[..., place]) for part, place in zip(self.parts, self.places, strict=True)]

    def with_priors(
        self, value: Array, grad_constant: Array, derivatives: tuple[Array, Array, Array], written: Written
    ) -> tuple[Array, Array]:
        """Return the logarithms of likelihoods and priors, `...`, and the gradients in the real numbers, `... x k`.

        Args:
            value: logarithms of likelihoods, `...`.
            to_constant: their derivatives in the prior means, `...`.
            derivatives: in the noise, the outputscale and the lengthscales; not read where these are known.
            written: what `written` returns.
        """
        gradient = np.empty((*value.shape, self.places[-1].stop))
        gradient[..., 0] = grad_constant
        for part, place, (number, slope), derivative in zip(self.parts, self.places, written, derivatives, strict=True):
            if part.size:
                if part.prior is not None:
                    density, score = part.prior.log_density(number)
                    value = value + density.sum(-1)
                    derivative = derivative + score
                gradient[..., place] = derivative * slope
        return value, gradient

    def _hyperparameters(self, raw: Array, written: Written) -> Hyperparameters:
        (noise, _), (outputscale, _), (lengthscale, _) = written
        return Hyperparameters(
            float(raw[0]),
            torch.from_numpy(noise) if self.noise.size else self.known.noise,
            float(outputscale[0]) if self.outputscale.size else self.known.outputscale,
            torch.from_numpy(lengthscale) if self.lengthscale.size else self.known.lengthscale,
        )


Objective = Callable[[Array], tuple[float, Array]]
"""Maps real numbers to a value and its gradient; raises NanError or NotPSDError where there is none."""


def maximise(objective: Objective, unknowns: Unknowns, generator: np.random.Generator) -> tuple[Array, list[str]]:
    """Return the real numbers of a (penalised) maximum, and what attempts at it that failed said.

    L-BFGS-B from GPyTorch's initial values; where it ends without having converged, from draws of the priors, as
    BoTorch does. If none of the attempts converges the best end of all is taken.

    Args:
        objective: to be maximised.
        unknowns: what is fitted.
        generator: of other starts.

    Raises:
        ModelFittingError: no attempt came to a number.
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
        raise ModelFittingError("the marginal likelihood is no number at any of the optimiser's starts")
    return min(finite, key=lambda end: float(end.fun)).x, [str(end.message) for end in ends]
