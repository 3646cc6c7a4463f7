"""Predictive distributions given by their quantiles."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor

from plumbline.core.numbers import Array, Numbers, namespace_of
from plumbline.forecasts import gaussian
from plumbline.forecasts.gaussian import NODES, WEIGHTS
from plumbline.methods.localised.thresholds import FLOOR


class QuantilePredictive(ABC):
    """Forecasts of one outcome at `n` points; sets are central intervals."""

    @property
    @abstractmethod
    def mean(self) -> Tensor:
        """Expected observations: `n`."""

    @property
    @abstractmethod
    def sd(self) -> Tensor:
        """Standard deviations of observations, noise included: `n`."""

    @abstractmethod
    def quantile(self, p: Tensor) -> Tensor:
        """Return the quantiles of levels `p` (`... x n`): `... x n`."""

    @abstractmethod
    def cdf(self, y: Tensor) -> Tensor:
        """Return the probability of an observation of at most `y` (`n`)."""

    @abstractmethod
    def log_prob(self, y: Tensor) -> Tensor:
        """Return the log density at `y` (`n`)."""

    def interval(self, alpha: float) -> tuple[Tensor, Tensor]:
        """Return the ends of the central interval of level `1 - alpha`: two of `n`."""
        level = torch.full_like(self.mean, alpha / 2)
        low, high = self.quantile(torch.stack([level, 1 - level]))
        return low, high

    def covers(self, y: Tensor, alpha: float) -> Tensor:
        """Return 1 where the central interval of level `1 - alpha` holds `y` (`n`), else 0."""
        low, high = self.interval(alpha)
        return ((low <= y) & (y <= high)).to(y.dtype)

    def width(self, alpha: float) -> Tensor:
        """Return the length of the central interval of level `1 - alpha`: `n`."""
        low, high = self.interval(alpha)
        return high - low

    def crps(self, y: Tensor) -> Tensor:
        """Return the continuous ranked probability score at `y` (`n`)."""
        return ranked_probability_score(y, self.cdf(y), self.quantile)


def ranked_probability_score(y: Numbers, level: Numbers, quantile: Callable[[Numbers], Numbers]) -> Numbers:
    """Return the continuous ranked probability score: twice the pinball loss, averaged over levels.

    The loss has a kink at the level of `y`; 32 nodes on either side give about four correct digits.

    Args:
        y: `n`.
        level: the distribution function at `y`, `n`.
        quantile: the quantiles of levels, `... x n` each.
    """
    xp = namespace_of(y)
    shares, weights = xp.asarray((NODES + 1) / 2)[:, None], xp.asarray(WEIGHTS / 2)[:, None]
    below, above = level * shares, level + (1 - level) * shares
    at_below, at_above = quantile(xp.stack([below, above]))
    # Quantiles of level 0 and 1 may be infinite; the loss there is zero.
    of_below = xp.where(below > 0, 2 * below * (y - at_below), 0.0)
    of_above = xp.where(above < 1, 2 * (1 - above) * (at_above - y), 0.0)
    return level * (weights * of_below).sum(0) + (1 - level) * (weights * of_above).sum(0)


@dataclass(frozen=True)
class StandardLabels:
    """Laws of n labels in the model's units: uniform on a set, standard Gaussian outside; eq. 28.

    Attributes:
        outside: `n`, the model's probability outside the set.
        alpha: the calibrated probability outside the set.
    """

    outside: Array
    alpha: float

    @cached_property
    def half_width(self) -> Array:
        """Half the length of the set: `n`."""
        return abs(special.ndtri(self.outside / 2))

    @property
    def sd(self) -> Array:
        """Standard deviations: `n`."""
        h = self.half_width
        tails = self.outside + 2 * h * gaussian.density(h)  # of z^2 under the model, beyond -h and h
        return np.sqrt((1 - self.alpha) * h * h / 3 + self.alpha / self.outside * tails)

    def distance(self, tail: Array | float) -> Array:
        """Return the absolute quantiles of levels `tail` and `1 - tail`, with `tail <= .5` of shape `... x n`."""
        # Tiny levels are legal and far out; the quantile of level 0 is infinite, as for any Gaussian.
        beyond = -special.ndtri(np.minimum(tail / self.alpha * self.outside, 0.5))
        within = self.half_width * ((1 - 2 * tail) / (1 - self.alpha))
        return np.where(tail < self.alpha / 2, beyond, within)

    def quantile(self, p: Array) -> Array:
        """Return the quantiles of levels `p`, `... x n`."""
        return np.sign(p - 0.5) * self.distance(np.minimum(p, 1 - p))

    def cdf(self, z: Array) -> Array:
        """Return the probability of a label of at most `z`, `n`."""
        share = np.minimum(abs(z), self.half_width) / np.maximum(self.half_width, np.finfo(z.dtype).tiny)
        within = 0.5 - 0.5 * (1 - self.alpha) * share
        upper = np.where(self._beyond(z), self.alpha / self.outside * gaussian.cdf(-abs(z)), within)
        return np.where(z < 0, upper, 1 - upper)

    def log_density(self, z: Array) -> Array:
        """Return the log density at `z`, `n`; infinite nowhere but at zero where the set has no length."""
        with np.errstate(divide="ignore"):
            within = np.log((1 - self.alpha) / (2 * self.half_width))
            outside = np.log(self.alpha / self.outside / gaussian.SQRT_2PI) - 0.5 * np.square(z)
        return np.where(self._beyond(z), outside, within)

    def _beyond(self, z: Array) -> NDArray[np.bool_]:
        """Whether labels lie outside the set."""
        return conformity(z) < self.outside


def conformity(z: Numbers) -> Numbers:
    """Return the conformity scores of standardised labels; eq. 25."""
    return 2 * gaussian.cdf(-abs(z))


@dataclass(frozen=True)
class LocalisedPredictive(QuantilePredictive):
    """Uniform on the set with mass `1 - alpha`, the model's own distribution outside with mass `alpha`; eq. 28.

    Its central interval of level `1 - alpha` is the set. The distribution clips the threshold to [1e-6, 1], but
    coverage follows eq. 24 with the raw threshold: up to 0 the set is the whole line, and above 1 it is empty.

    Attributes:
        model_mean: `n`.
        model_sd: `n`, noise included.
        threshold: `n`, unclipped: the model's probability outside the set.
        alpha: the calibrated probability outside the set.
    """

    model_mean: Tensor
    model_sd: Tensor
    threshold: Tensor
    alpha: float

    @cached_property
    def labels(self) -> StandardLabels:
        """The distributions in the model's standard deviations from its means."""
        return StandardLabels(self.threshold.numpy().clip(FLOOR, 1.0), self.alpha)

    @property
    def mean(self) -> Tensor:
        """Expected observations, the model's: the distribution is symmetric."""
        return self.model_mean

    @property
    def sd(self) -> Tensor:
        """Standard deviations of observations."""
        return self.model_sd * torch.from_numpy(self.labels.sd)

    def quantile(self, p: Tensor) -> Tensor:
        """Return the quantiles of levels `p`."""
        return self.model_mean + self.model_sd * torch.from_numpy(self.labels.quantile(p.numpy()))

    def interval(self, alpha: float) -> tuple[Tensor, Tensor]:
        """Return the ends of the central interval of level `1 - alpha`."""
        half = self.width(alpha) / 2
        return self.model_mean - half, self.model_mean + half

    def width(self, alpha: float) -> Tensor:
        """Return the length of the central interval of level `1 - alpha`."""
        return 2 * self.model_sd * torch.from_numpy(self.labels.distance(alpha / 2))

    def cdf(self, y: Tensor) -> Tensor:
        """Return the probability of an observation of at most `y`."""
        return torch.from_numpy(self.labels.cdf(self._standardised(y)))

    def log_prob(self, y: Tensor) -> Tensor:
        """Return the log density at `y`; infinite nowhere but at the mean where the set has no length."""
        return torch.from_numpy(self.labels.log_density(self._standardised(y))) - self.model_sd.log()

    def covers(self, y: Tensor, alpha: float) -> Tensor:
        """Return 1 where the central interval of level `1 - alpha` holds `y`, else 0."""
        z = self._standardised(y)
        if alpha == self.alpha:
            held = conformity(z) >= self.threshold.numpy()
        else:
            held = abs(z) <= self.labels.distance(alpha / 2)
        return torch.from_numpy(held.astype(z.dtype))

    def crps(self, y: Tensor) -> Tensor:
        """Return the continuous ranked probability score at `y`."""
        z = self._standardised(y)
        with np.errstate(invalid="ignore"):
            score = ranked_probability_score(z, self.labels.cdf(z), self.labels.quantile)
        return self.model_sd * torch.from_numpy(score)

    def _standardised(self, y: Tensor) -> Array:
        return ((y - self.model_mean) / self.model_sd).numpy()
