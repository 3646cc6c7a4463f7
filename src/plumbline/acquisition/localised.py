"""Expected improvement under LOCBO's calibrated posterior: closed form and one smooth quadrature, no Monte Carlo.

A label is uniform on the set `[L, U]` with mass `1 - alpha` and follows the model's predictive distribution outside it
with mass `alpha` (eq. 28); given a label, `f` is Gaussian with mean `g y + (1 - g) mu` and variance `s2n g` (eq. 29).

The paper's Lemma 3 writes the posterior with error functions of quantities that enter squared twice, and is not
consistent in its units; the form here is derived from eq. 28 and 29.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.special import ndtr, ndtri

NODES, WEIGHTS = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(32))
"""Of Gauss-Legendre quadrature on [-1, 1]."""

TINY = 1e-12
"""Variances and widths are kept this far from zero, in the model's standardised units."""


def _density(t: Tensor) -> Tensor:
    return torch.exp(-0.5 * t.square()) / (2 * torch.pi) ** 0.5


def expected_gain(mean: Tensor, sd: Tensor, best: Tensor) -> Tensor:
    """Return `E [f - best]+` of a Gaussian `f`: `s h((m - best) / s)` with `h(t) = t Phi(t) + phi(t)`."""
    t = (mean - best) / sd
    return sd * (t * ndtr(t) + _density(t))


def integrated_gain(t: Tensor) -> Tensor:
    """Return `H(t) = ((t^2 + 1) Phi(t) + t phi(t)) / 2`, the antiderivative of `h` that vanishes at minus infinity."""
    return 0.5 * ((t.square() + 1) * ndtr(t) + t * _density(t))


@dataclass(frozen=True)
class CalibratedPosterior:
    """LOCBO's posterior of `f` at points of any shape; every attribute broadcasts to it.

    Attributes:
        mean: predictive mean.
        variance: predictive variance of an observation, noise included.
        noise: noise variance.
        threshold: of the set, in (0, 1]: the predictive probability outside it.
        alpha: the mass that the posterior puts outside the set.
    """

    mean: Tensor
    variance: Tensor
    noise: Tensor
    threshold: Tensor
    alpha: float

    @property
    def gain(self) -> Tensor:
        """Share of the predictive variance that is not noise: `g`."""
        return ((self.variance - self.noise) / self.variance).clamp(TINY, 1.0)

    @property
    def half_width(self) -> Tensor:
        """Half the length of the set: zero where the threshold is one."""
        return -ndtri(self.threshold / 2) * self.variance.sqrt()

    def sd_given_label(self) -> Tensor:
        """Return the standard deviation of `f` given a label, the same for all labels."""
        return (self.noise * self.gain).clamp_min(TINY).sqrt()

    def expected_improvement(self, best: Tensor) -> Tensor:
        """Return the expected gain over `best`; eq. 30 with the utility of expected improvement."""
        return (1 - self.alpha) * self._inside(best) + self.alpha * self._outside(best)

    def _inside(self, best: Tensor) -> Tensor:
        """Return the expectation over uniform labels of the set; at its mean where it has no length."""
        sd, g, half = self.sd_given_label(), self.gain, self.half_width
        wide = half > TINY
        safe = torch.where(wide, half, torch.ones_like(half))
        centre = (self.mean - best) / sd
        reach = g * safe / sd
        average = sd.square() / g * (integrated_gain(centre + reach) - integrated_gain(centre - reach)) / (2 * safe)
        return torch.where(wide, average, expected_gain(self.mean, sd, best))

    def _outside(self, best: Tensor) -> Tensor:
        """Return the expectation over labels outside the set: that of all labels less that of those inside."""
        sd, half = self.sd_given_label(), self.half_width.unsqueeze(-1)
        everywhere = expected_gain(self.mean, (self.variance * self.gain).clamp_min(TINY).sqrt(), best)
        z = half * NODES / self.variance.sqrt().unsqueeze(-1)
        shifted = self.mean.unsqueeze(-1) + self.gain.unsqueeze(-1) * half * NODES
        gains = expected_gain(shifted, sd.unsqueeze(-1), best.unsqueeze(-1))
        width = (half / self.variance.sqrt().unsqueeze(-1)).squeeze(-1)
        within = width * (WEIGHTS * _density(z) * gains).sum(dim=-1)
        return (everywhere - within).clamp_min(0.0) / self.threshold

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Return `n` draws of `f` at each point, first dimension: for tests and for utilities without a closed form."""
        shape = (n, *torch.broadcast_shapes(self.mean.shape, self.variance.shape, self.threshold.shape))
        u, v, w = (torch.rand(shape, generator=generator, dtype=torch.float64) for _ in range(3))
        eps = torch.randn(shape, generator=generator, dtype=torch.float64)
        inside = self.mean + (2 * v - 1) * self.half_width
        # Beyond the set the tails hold `threshold / 2` each: invert the tail at a uniform share of it.
        tail = -ndtri((v * self.threshold / 2).clamp_min(1e-300)) * self.variance.sqrt()
        label = torch.where(u < self.alpha, self.mean + torch.where(w < 0.5, -tail, tail), inside)
        return self.mean + self.gain * (label - self.mean) + self.sd_given_label() * eps
