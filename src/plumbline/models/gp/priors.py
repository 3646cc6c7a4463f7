"""Priors of positive hyperparameters, and their transforms from raw (unconstrained) parameters.

They are in NumPy, since torch's operations are slower on a handful of numbers.
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
    """Prior density of a positive hyperparameter."""

    def log_density(self, x: Array) -> tuple[Array, Array]:
        """Return the log density and its derivative, elementwise."""
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

    def log_density(self, x: Array) -> tuple[Array, Array]:
        """Return the log density and its derivative, elementwise."""
        log = np.log(x)
        score = (log - self.loc) / self.scale**2
        constant = math.log(self.scale) + 0.5 * math.log(2 * math.pi)
        return -log - 0.5 * (log - self.loc) * score - constant, -(1 + score) / x

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

    def log_density(self, x: Array) -> tuple[Array, Array]:
        """Return the log density and its derivative, elementwise."""
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return constant + (self.shape - 1) * np.log(x) - self.rate * x, (self.shape - 1) / x - self.rate

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Return `size` independent draws."""
        return generator.gamma(self.shape, 1 / self.rate, size)


class Positive(Protocol):
    """Transform between a raw parameter and a positive hyperparameter."""

    @property
    def range(self) -> tuple[float, float]:
        """Bounds of the raw parameter."""
        ...

    def value(self, raw: Array) -> tuple[Array, Array]:
        """Return the hyperparameters and their derivatives, elementwise."""
        ...

    def raw(self, value: Array) -> Array:
        """Return the raw parameters of hyperparameters."""
        ...


@dataclass(frozen=True)
class Bounded:
    """The identity, at least `floor`: the optimiser enforces the bound."""

    floor: float

    @property
    def range(self) -> tuple[float, float]:
        """From `floor` to infinity."""
        return self.floor, math.inf

    def value(self, raw: Array) -> tuple[Array, Array]:
        """Return the parameters themselves, with derivatives of one."""
        return raw, np.ones_like(raw)

    def raw(self, value: Array) -> Array:
        """Return the hyperparameters, clipped to at least `floor`."""
        return np.maximum(value, self.floor)


@dataclass(frozen=True)
class Softplus:
    """`floor + log(1 + exp(raw))`."""

    floor: float = 0.0
    range: tuple[float, float] = ANY

    def value(self, raw: Array) -> tuple[Array, Array]:
        """Return the hyperparameters and their derivatives."""
        return self.floor + np.logaddexp(raw, 0.0), expit(raw)

    def raw(self, value: Array) -> Array:
        """Return the raw parameters of hyperparameters."""
        above = np.maximum(value - self.floor, 1e-12)
        return above + np.log(-np.expm1(-above))


@dataclass(frozen=True)
class Between:
    """`low + (high - low) / (1 + exp(-raw))`."""

    low: float
    high: float
    range: tuple[float, float] = ANY

    def value(self, raw: Array) -> tuple[Array, Array]:
        """Return the hyperparameters and their derivatives."""
        share = expit(raw)
        width = self.high - self.low
        return self.low + width * share, width * share * (1 - share)

    def raw(self, value: Array) -> Array:
        """Return the raw parameters of hyperparameters."""
        return logit(np.clip((value - self.low) / (self.high - self.low), 1e-9, 1 - 1e-9))


@dataclass(frozen=True)
class Logarithm:
    """The exponential, between `low` and `high`: the optimiser enforces the bounds."""

    low: float
    high: float

    @property
    def range(self) -> tuple[float, float]:
        """Logarithms of `low` and `high`."""
        return math.log(self.low), math.log(self.high)

    def value(self, raw: Array) -> tuple[Array, Array]:
        """Return the exponentials, which are their own derivatives."""
        value = np.exp(raw)
        return value, value

    def raw(self, value: Array) -> Array:
        """Return the logarithms of hyperparameters, clipped to the bounds."""
        return np.log(np.clip(value, self.low, self.high))


@dataclass(frozen=True)
class Hyperparameter:
    """Positive hyperparameters of one kind, such as the lengthscales.

    Attributes:
        size: their number; 0 where they are known.
        transform: transform from raw parameters.
        initial: value at the first start.
        prior: prior of each; None for a flat one.
    """

    size: int
    transform: Positive
    initial: float
    prior: Prior | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds of the hyperparameters."""
        low, high = self.transform.value(np.array(self.transform.range))[0].tolist()
        return low, high

    def start(self) -> Array:
        """Return the raw parameters of the first start."""
        return self.transform.raw(np.full(self.size, self.initial))

    def another_start(self, generator: np.random.Generator) -> Array:
        """Return raw parameters to restart from: draws of the prior, or the initial value times e^N(0, 1)."""
        prior = self.prior or LogNormal(math.log(self.initial), 1.0)
        return self.transform.raw(prior.draw(self.size, generator))
