"""Positive hyperparameters, their bounds and priors.

Fits climb in logarithms of the hyperparameters, in which likelihoods are well scaled. Priors remain densities of the
hyperparameters themselves. All is in NumPy, since torch's operations are slower on a handful of numbers.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


LEAST, MOST = 1e-6, 1e4
"""Bounds of hyperparameters that have no others.

A linear function is likeliest under an infinite variance. Far beyond `MOST`, posterior variances are rounding errors.
"""


class Prior(Protocol):
    """Prior density of a positive hyperparameter."""

    def log_density(self, log: Array) -> tuple[Array, Array]:
        """Return the log density at `exp(log)`, and its derivative in `log`, elementwise."""
        ...

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Return `size` independent draws."""
        ...


@dataclass(frozen=True)
class LogNormal:
    """Log-normal: the logarithm is Gaussian with mean `loc` and standard deviation `scale`."""

    loc: float
    scale: float

    @property
    def mode(self) -> float:
        """Mode of the density."""
        return math.exp(self.loc - self.scale**2)

    def log_density(self, log: Array) -> tuple[Array, Array]:
        """Return the log density at `exp(log)`, and its derivative in `log`, elementwise."""
        score = (log - self.loc) / self.scale**2
        constant = math.log(self.scale) + 0.5 * math.log(2 * math.pi)
        return -log - 0.5 * (log - self.loc) * score - constant, -(1 + score)

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Return `size` independent draws."""
        return generator.lognormal(self.loc, self.scale, size)


@dataclass(frozen=True)
class Gamma:
    """Gamma: the density is `rate^shape x^(shape - 1) exp(-rate x) / Gamma(shape)`."""

    shape: float
    rate: float

    @property
    def mode(self) -> float:
        """Mode of the density, for a shape of at least one."""
        return (self.shape - 1) / self.rate

    def log_density(self, log: Array) -> tuple[Array, Array]:
        """Return the log density at `exp(log)`, and its derivative in `log`, elementwise."""
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        decay = self.rate * np.exp(log)
        return constant + (self.shape - 1) * log - decay, self.shape - 1 - decay

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Return `size` independent draws."""
        return generator.gamma(self.shape, 1 / self.rate, size)


@dataclass(frozen=True)
class Hyperparameter:
    """Positive hyperparameters of one kind, such as the lengthscales.

    Attributes:
        size: their number; 0 where they are known.
        initial: value at the first start.
        prior: prior of each; None for a flat one.
        low, high: bounds, which the optimiser enforces.
    """

    size: int
    initial: float
    prior: Prior | None = None
    low: float = LEAST
    high: float = MOST

    def start(self) -> Array:
        """Return the logarithms of the first start."""
        return self._logarithms(np.full(self.size, self.initial))

    def another_start(self, generator: np.random.Generator) -> Array:
        """Return logarithms to restart from: of draws of the prior, or of the initial value times e^N(0, 1)."""
        prior = self.prior or LogNormal(math.log(self.initial), 1.0)
        return self._logarithms(prior.draw(self.size, generator))

    def _logarithms(self, values: Array) -> Array:
        return np.log(np.clip(values, self.low, self.high))
