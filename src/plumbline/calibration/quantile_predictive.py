"""Predictive distributions that are known by their quantiles."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from plumbline.calibration.gaussian import NODES, WEIGHTS


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
        return self.quantile(level), self.quantile(1 - level)

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

        The loss has a kink at the level of `y`; 32 nodes on either side of it are right to about four digits.
        """
        level = self.cdf(y)
        below = level * (NODES.unsqueeze(-1) + 1) / 2
        above = level + (1 - level) * (NODES.unsqueeze(-1) + 1) / 2
        of_below = 2 * below * (y - self.quantile(below))
        of_above = 2 * (1 - above) * (self.quantile(above) - y)
        weights = WEIGHTS.unsqueeze(-1) / 2
        return level * (weights * of_below).sum(dim=0) + (1 - level) * (weights * of_above).sum(dim=0)
