"""Predictive distributions of observations, with their densities, sets and scores."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from scipy.special import chdtri
from torch import Tensor
from torch.distributions import Normal
from torch.special import ndtr, ndtri


class SetPredictive(Protocol):
    """A forecast of one or several outcomes at `n` points, with prediction sets; every result has shape `n`."""

    def log_prob(self, y: Tensor) -> Tensor:
        """Return the log density at `y` (`n`, or `n x m`)."""
        ...

    def covers(self, y: Tensor, alpha: float) -> Tensor:
        """Return the probability that the set of level `1 - alpha` contains `y`: 0 or 1 unless the set is random.

        Of sets of single outcomes it is the mean over them.
        """
        ...

    def width(self, alpha: float) -> Tensor:
        """Return the length (area, volume) of the set of level `1 - alpha`."""
        ...


class Predictive(SetPredictive, Protocol):
    """A predictive distribution of one outcome at `n` points; every result has shape `n`."""

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

    def crps(self, y: Tensor) -> Tensor:
        """Return the continuous ranked probability score at `y` (`n`), in units of y; lower is better."""
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
        """Return the continuous ranked probability score at `y`; Gneiting et al. (2005)."""
        z = (y - self.mean) / self.sd
        density = Normal(torch.zeros_like(z), torch.ones_like(z)).log_prob(z).exp()
        return self.sd * (z * (2 * ndtr(z) - 1) + 2 * density - torch.pi**-0.5)

    def half_width(self, alpha: float) -> Tensor:
        """Return half the length of the central interval of level `1 - alpha`."""
        return self.sd * ndtri(torch.tensor(1 - alpha / 2, dtype=self.sd.dtype))

    def covers(self, y: Tensor, alpha: float) -> Tensor:
        """Return 1 where the central interval of level `1 - alpha` contains `y`, else 0."""
        return ((y - self.mean).abs() <= self.half_width(alpha)).to(self.sd.dtype)

    def width(self, alpha: float) -> Tensor:
        """Return the length of the central interval of level `1 - alpha`."""
        return 2 * self.half_width(alpha)


@dataclass(frozen=True)
class JointGaussianPredictive:
    """Independent Gaussian outcomes with ellipsoidal credible sets, the smallest of their level.

    Attributes:
        mean: `n x m`.
        sd: `n x m`, noise included.
    """

    mean: Tensor
    sd: Tensor

    def log_prob(self, y: Tensor) -> Tensor:
        """Return the log density at `y` (`n x m`): `n`."""
        return Normal(self.mean, self.sd).log_prob(y).sum(dim=-1)

    def radius(self, alpha: float) -> float:
        """Return the radius, in standard deviations, of the set of level `1 - alpha`."""
        return math.sqrt(chdtri(self.mean.shape[-1], alpha))

    def covers(self, y: Tensor, alpha: float) -> Tensor:
        """Return 1 where the ellipsoid of level `1 - alpha` contains `y` (`n x m`), else 0: `n`."""
        distance = ((y - self.mean) / self.sd).square().sum(dim=-1).sqrt()
        return (distance <= self.radius(alpha)).to(self.sd.dtype)

    def width(self, alpha: float) -> Tensor:
        """Return the volume of the ellipsoid of level `1 - alpha`: `n`."""
        m = self.mean.shape[-1]
        ball = math.pi ** (m / 2) / math.gamma(m / 2 + 1) * self.radius(alpha) ** m
        return ball * self.sd.prod(dim=-1)


@dataclass(frozen=True)
class MarginalPredictive:
    """Marginal forecasts of several outcomes at `n` points, each with its own intervals.

    Attributes:
        outcomes: a forecast per outcome, `m`.
    """

    outcomes: Sequence[Predictive]

    @property
    def mean(self) -> Tensor:
        """Expected observations, `n x m`."""
        return torch.stack([one.mean for one in self.outcomes], dim=-1)

    @property
    def sd(self) -> Tensor:
        """Standard deviations of observations, `n x m`."""
        return torch.stack([one.sd for one in self.outcomes], dim=-1)

    def log_prob(self, y: Tensor) -> Tensor:
        """Return the joint log density at `y` (`n x m`) of independent outcomes: `n`."""
        return torch.stack([one.log_prob(y[:, i]) for i, one in enumerate(self.outcomes)]).sum(dim=0)

    def covers(self, y: Tensor, alpha: float) -> Tensor:
        """Return the share of outcomes whose interval of level `1 - alpha` contains `y` (`n x m`): `n`."""
        return torch.stack([one.covers(y[:, i], alpha) for i, one in enumerate(self.outcomes)]).mean(dim=0)

    def width(self, alpha: float) -> Tensor:
        """Return the product of the lengths of the intervals, `n`; 0 where one of them is empty."""
        widths = torch.stack([one.width(alpha) for one in self.outcomes])
        return torch.where((widths == 0).any(dim=0), 0.0, widths.prod(dim=0))
