"""Predictive distributions given by their quantiles."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.special import ndtri

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
        """Return the continuous ranked probability score at `y` (`n`): twice the pinball loss, averaged over levels.

        The loss has a kink at the level of `y`; 32 nodes on either side give about four correct digits.
        """
        level, shares = self.cdf(y), torch.from_numpy((NODES + 1) / 2).unsqueeze(-1)
        below, above = level * shares, level + (1 - level) * shares
        at_below, at_above = self.quantile(torch.stack([below, above]))
        of_below, of_above = 2 * below * (y - at_below), 2 * (1 - above) * (at_above - y)
        weights = torch.from_numpy(WEIGHTS / 2).unsqueeze(-1)
        return level * (weights * of_below).sum(dim=0) + (1 - level) * (weights * of_above).sum(dim=0)


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
    def outside(self) -> Tensor:
        """The clipped threshold of the distribution: `n`."""
        return self.threshold.clamp(FLOOR, 1.0)

    @cached_property
    def half_width(self) -> Tensor:
        """Half the length of the set, in the model's standard deviations: `n`."""
        return -ndtri(self.outside / 2)

    @property
    def mean(self) -> Tensor:
        """Expected observations, the model's: the distribution is symmetric."""
        return self.model_mean

    @property
    def sd(self) -> Tensor:
        """Standard deviations of observations."""
        h = self.half_width
        tails = self.outside + 2 * h * gaussian.density(h)  # of z^2 under the model, beyond -h and h
        return self.model_sd * ((1 - self.alpha) * h.square() / 3 + self.alpha / self.outside * tails).sqrt()

    def quantile(self, p: Tensor) -> Tensor:
        """Return the quantiles of levels `p`."""
        tail = torch.minimum(p, 1 - p)
        # Tiny levels are legal and far out; the quantile of level 0 is infinite, as for any Gaussian.
        beyond = -ndtri((tail / self.alpha * self.outside).clamp(max=0.5))
        within = self.half_width * (1 - 2 * tail) / (1 - self.alpha)
        distance = torch.where(tail < self.alpha / 2, beyond, within)
        return self.model_mean + torch.sign(p - 0.5) * self.model_sd * distance

    def interval(self, alpha: float) -> tuple[Tensor, Tensor]:
        """Return the ends of the central interval of level `1 - alpha`."""
        half = self.width(alpha) / 2
        return self.model_mean - half, self.model_mean + half

    def width(self, alpha: float) -> Tensor:
        """Return the length of the central interval of level `1 - alpha`."""
        if alpha < self.alpha:
            half = -ndtri((alpha / self.alpha * self.outside / 2).clamp(max=0.5))
        else:
            half = self.half_width * ((1 - alpha) / (1 - self.alpha))
        return 2 * self.model_sd * half

    def cdf(self, y: Tensor) -> Tensor:
        """Return the probability of an observation of at most `y`."""
        z = (y - self.model_mean) / self.model_sd
        share = (z.abs() / self.half_width.clamp_min(torch.finfo(z.dtype).tiny)).clamp(max=1.0)
        within = 0.5 - 0.5 * (1 - self.alpha) * share
        upper = torch.where(self._beyond(z), self.alpha / self.outside * gaussian.cdf(-z.abs()), within)
        return torch.where(z < 0, upper, 1 - upper)

    def log_prob(self, y: Tensor) -> Tensor:
        """Return the log density at `y`; infinite nowhere but at the mean where the set has no length."""
        z = (y - self.model_mean) / self.model_sd
        within = torch.log((1 - self.alpha) / (2 * self.half_width))
        outside = torch.log(self.alpha / self.outside * gaussian.density(z))
        return torch.where(self._beyond(z), outside, within) - self.model_sd.log()

    def covers(self, y: Tensor, alpha: float) -> Tensor:
        """Return 1 where the central interval of level `1 - alpha` holds `y`, else 0."""
        if alpha != self.alpha:
            return super().covers(y, alpha)
        return (_score((y - self.model_mean) / self.model_sd) >= self.threshold).to(y.dtype)

    def _beyond(self, z: Tensor) -> Tensor:
        """Whether standardised labels lie outside the set of the clipped threshold."""
        return _score(z) < self.outside


def _score(z: Tensor) -> Tensor:
    """Return the conformity scores of standardised labels; eq. 25."""
    return 2 * gaussian.cdf(-z.abs())
