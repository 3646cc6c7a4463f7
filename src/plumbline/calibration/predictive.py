"""Predictive distributions of observations, and what can be checked of them."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.distributions import Normal
from torch.special import ndtr, ndtri


class Predictive(Protocol):
    """What a method predicts of observations at `n` points; every result is of shape `n`."""

    @property
    def mean(self) -> Tensor:
        """Expected observations."""
        ...

    @property
    def sd(self) -> Tensor:
        """Standard deviations of observations, noise included."""
        ...

    def cdf(self, y: Tensor) -> Tensor:
        """Return the probability of an observation of at most `y` (`n`)."""
        ...

    def log_prob(self, y: Tensor) -> Tensor:
        """Return the log density at `y` (`n`)."""
        ...

    def crps(self, y: Tensor) -> Tensor:
        """Return the continuous ranked probability score at `y` (`n`), in units of y; less is better."""
        ...

    def covers(self, y: Tensor, alpha: float) -> Tensor:
        """Return whether the set of level `1 - alpha` holds `y` (`n`)."""
        ...

    def width(self, alpha: float) -> Tensor:
        """Return the length of the set of level `1 - alpha`."""
        ...


@dataclass(frozen=True)
class GaussianPredictive:
    """Independent Gaussians with central credible intervals.

    Attributes:
        mean: `n`.
        sd: `n`, noise included.
    """

    mean: Tensor
    sd: Tensor

    def cdf(self, y: Tensor) -> Tensor:
        """Return the probability of an observation of at most `y`."""
        return ndtr((y - self.mean) / self.sd)

    def log_prob(self, y: Tensor) -> Tensor:
        """Return the log density at `y`."""
        return Normal(self.mean, self.sd).log_prob(y)

    def crps(self, y: Tensor) -> Tensor:
        """Return the continuous ranked probability score at `y`; Gneiting & Raftery (2007), eq. 5."""
        z = (y - self.mean) / self.sd
        density = Normal(torch.zeros_like(z), torch.ones_like(z)).log_prob(z).exp()
        return self.sd * (z * (2 * ndtr(z) - 1) + 2 * density - torch.pi**-0.5)

    def half_width(self, alpha: float) -> Tensor:
        """Return half the length of the central interval of level `1 - alpha`."""
        return self.sd * ndtri(torch.tensor(1 - alpha / 2, dtype=self.sd.dtype))

    def covers(self, y: Tensor, alpha: float) -> Tensor:
        """Return whether the central interval of level `1 - alpha` holds `y`."""
        return (y - self.mean).abs() <= self.half_width(alpha)

    def width(self, alpha: float) -> Tensor:
        """Return the length of the central interval of level `1 - alpha`."""
        return 2 * self.half_width(alpha)
