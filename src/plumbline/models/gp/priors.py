"""Priors of positive hyperparameters, and the real numbers that these are written as while they are fitted.

In NumPy: they are a handful of numbers, on which torch's operations take longer.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Array = NDArray[np.float64]

ANY = (-math.inf, math.inf)


class Prior(Protocol):
    """A density of positive numbers."""

    def log_density(self, x: Array) -> tuple[Array, Array]:
        """Return the logarithm of the density and its derivative, elementwise."""
        ...

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Return `size` independent draws."""
        ...


@dataclass(frozen=True)
class LogNormal:
    """The logarithm is Gaussian with mean `loc` and standard deviation `scale`."""

    loc: float
    scale: float

    @property
    def mode(self) -> float:
        """Where the density is greatest."""
        return math.exp(self.loc - self.scale**2)

    def log_density(self, x: Array) -> tuple[Array, Array]:
        """Return the logarithm of the density and its derivative, elementwise."""
        log = np.log(x)
        score = (log - self.loc) / self.scale**2
        constant = math.log(self.scale) + 0.5 * math.log(2 * math.pi)
        return -log - 0.5 * (log - self.loc) * score - constant, -(1 + score) / x

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Return `size` independent draws."""
        return generator.lognormal(self.loc, self.scale, size)


@dataclass(frozen=True)
class Gamma:
    """The density is `rate^shape x^(shape - 1) exp(-rate x) / Gamma(shape)`."""

    shape: float
    rate: float

    @property
    def mode(self) -> float:
        """Where the density is greatest, for a shape of at least one."""
        return (self.shape - 1) / self.rate

    def log_density(self, x: Array) -> tuple[Array, Array]:
        """Return the logarithm of the density and its derivative, elementwise."""
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return constant + (self.shape - 1) * np.log(x) - self.rate * x, (self.shape - 1) / x - self.rate

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Return `size` independent draws."""
        return generator.gamma(self.shape, 1 / self.rate, size)


class Positive(Protocol):
    """How a positive number is written as a real one."""

    @property
    def range(self) -> tuple[float, float]:
        """Least and greatest real number that is allowed."""
        ...

    def value(self, raw: Array) -> tuple[Array, Array]:
        """Return the positive numbers and their derivatives, elementwise."""
        ...

    def raw(self, value: Array) -> Array:
        """Return the real numbers of positive ones."""
        ...


@dataclass(frozen=True)
class Bounded:
    """As itself, at least `floor`: the optimiser knows the bound."""

    floor: float

    @property
    def range(self) -> tuple[float, float]:
        """From the bound on."""
        return self.floor, math.inf

    def value(self, raw: Array) -> tuple[Array, Array]:
        """Return the numbers themselves, with derivatives of one."""
        return raw, np.ones_like(raw)

    def raw(self, value: Array) -> Array:
        """Return the numbers themselves, not below the bound."""
        return np.maximum(value, self.floor)


@dataclass(frozen=True)
class Softplus:
    """As `floor + log(1 + exp(raw))`."""

    floor: float = 0.0
    range: tuple[float, float] = ANY

    def value(self, raw: Array) -> tuple[Array, Array]:
        """Return the positive numbers and their derivatives."""
        return self.floor + np.logaddexp(raw, 0.0), expit(raw)

    def raw(self, value: Array) -> Array:
        """Return the real numbers of positive ones."""
        above = np.maximum(value - self.floor, 1e-12)
        return above + np.log(-np.expm1(-above))


@dataclass(frozen=True)
class Between:
    """As `low + (high - low) / (1 + exp(-raw))`."""

    low: float
    high: float
    range: tuple[float, float] = ANY

    def value(self, raw: Array) -> tuple[Array, Array]:
        """Return the positive numbers and their derivatives."""
        share = expit(raw)
        width = self.high - self.low
        return self.low + width * share, width * share * (1 - share)

    def raw(self, value: Array) -> Array:
        """Return the real numbers of positive ones."""
        return logit(np.clip((value - self.low) / (self.high - self.low), 1e-9, 1 - 1e-9))


@dataclass(frozen=True)
class Logarithm:
    """As its logarithm, between `low` and `high`: the optimiser knows the bounds."""

    low: float
    high: float

    @property
    def range(self) -> tuple[float, float]:
        """Between the logarithms of the bounds."""
        return math.log(self.low), math.log(self.high)

    def value(self, raw: Array) -> tuple[Array, Array]:
        """Return the positive numbers and their derivatives, which are the same."""
        value = np.exp(raw)
        return value, value

    def raw(self, value: Array) -> Array:
        """Return the logarithms of positive numbers, kept within the bounds."""
        return np.log(np.clip(value, self.low, self.high))


@dataclass(frozen=True)
class Hyperparameter:
    """Some positive numbers of one kind, such as the lengthscales.

    Attributes:
        size: how many; 0 where they are known.
        written: as real numbers.
        initial: where fitting begins.
        prior: of each; None for none.
    """

    size: int
    written: Positive
    initial: float
    prior: Prior | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest value."""
        low, high = self.written.value(np.array(self.written.range))[0].tolist()
        return low, high

    def start(self) -> Array:
        """Return the real numbers that fitting begins with."""
        return self.written.raw(np.full(self.size, self.initial))

    def another_start(self, generator: np.random.Generator) -> Array:
        """Return other real numbers to begin with: of draws of the prior, or of the initial value times e^N(0, 1)."""
        prior = self.prior or LogNormal(math.log(self.initial), 1.0)
        return self.written.raw(prior.draw(self.size, generator))
