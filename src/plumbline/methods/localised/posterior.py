"""LOCBO's calibrated posterior: closed forms and one smooth quadrature, no Monte Carlo.

A label is uniform on the set `[L, U]` with mass `1 - alpha` and follows the model's predictive distribution outside it
with mass `alpha` (eq. 28). Given a label, `f` is Gaussian with mean `g y + (1 - g) mu` and variance `s2n g` (eq. 29).

The density of `f` in the paper's Lemma 3 has errors: its mass is infinite and its units are inconsistent.
docs/methods/localised-erratum.md lists them and derives the form used here.

The numbers are tensors, or arrays as in searches.
"""

from dataclasses import dataclass
from typing import Generic

import torch
from torch import Tensor
from torch.special import ndtri

from plumbline.core.numbers import Numbers, namespace_of, special_of
from plumbline.methods.localised.law import Slopes, StandardLaw

TINY = 1e-12
"""Lower bound of shares of the variance, and of widths in its units."""


@dataclass(frozen=True)
class CalibratedPosterior(Generic[Numbers]):
    """LOCBO's posterior of `f` at points of any shape; every attribute and argument broadcasts to it.

    With several values at each point, their dimension comes first.

    Attributes:
        mean: predictive mean.
        variance: predictive variance of an observation, noise included.
        noise: noise variance.
        threshold: threshold of the set, in (0, 1]: the predictive probability outside it.
        alpha: mass of the posterior outside the set.
    """

    mean: Numbers
    variance: Numbers
    noise: Numbers
    threshold: Numbers
    alpha: float

    @property
    def signal_share(self) -> Numbers:
        """Share of the predictive variance that is not noise: `g`."""
        return namespace_of(self.variance).clip((self.variance - self.noise) / self.variance, TINY, 1.0)

    @property
    def noise_share(self) -> Numbers:
        """Share of the predictive variance that is noise: `1 - g`."""
        return namespace_of(self.variance).clip(self.noise / self.variance, TINY, 1.0)

    @property
    def half_width(self) -> Numbers:
        """Half the length of the set: zero where the threshold is one."""
        return self._zeta() * namespace_of(self.variance).sqrt(self.variance)

    def sd_of_value(self) -> Numbers:
        """Return the standard deviation of `f` under the model."""
        return namespace_of(self.variance).sqrt(self.variance * self.signal_share)

    def sd_given_label(self) -> Numbers:
        """Return the standard deviation of `f` given a label, the same for all labels."""
        return self.sd_of_value() * namespace_of(self.variance).sqrt(self.noise_share)

    def expected_improvement(self, best: Numbers) -> Numbers:
        """Return the expected improvement over `best`; eq. 30."""
        return self.expected_improvement_with_slopes(best)[0]

    def expected_improvement_with_slopes(self, best: Numbers) -> tuple[Numbers, Slopes[Numbers]]:
        """Return the same, and its derivatives in the mean, in the standard deviation of `f` at fixed noise, and in
        the threshold."""
        sd = self.sd_of_value()
        c = (self.mean - best) / sd
        improvement, law_slopes = self._law().improvement_with_slopes(c)

        def slopes() -> tuple[Numbers, Numbers, Numbers]:
            grad_c, grad_scale, grad_threshold = law_slopes()
            return grad_c, improvement - c * grad_c + grad_scale, sd * grad_threshold

        return sd * improvement, slopes

    def density(self, f: Numbers) -> Numbers:
        """Return the density at `f`; eq. 29."""
        sd = self.sd_of_value()
        return self._law().density((f - self.mean) / sd) / sd

    def cdf(self, f: Numbers) -> Numbers:
        """Return the mass up to `f`, the integral of eq. 29."""
        return self._law().cdf((f - self.mean) / self.sd_of_value())

    def quantile(self, p: Numbers) -> Numbers:
        """Return the quantile of level `p`, for `0 < p < 1`.

        `cdf(quantile(p))` is `p` within 1e-12 plus the density times the spacing of floats at it and at the mean.
        """
        return self.quantile_with_slopes(p)[0]

    def quantile_with_slopes(self, p: Numbers) -> tuple[Numbers, Slopes[Numbers]]:
        """Return the same, and its derivatives, like those of `expected_improvement_with_slopes`."""
        sd = self.sd_of_value()
        u, law_slopes = self._law().quantile_with_slopes(p)

        def slopes() -> tuple[Numbers, Numbers, Numbers]:
            grad_scale, grad_threshold = law_slopes()
            return namespace_of(u).ones_like(u), u + grad_scale, sd * grad_threshold

        return self.mean + sd * u, slopes

    def sample(self: "CalibratedPosterior[Tensor]", n: int, generator: torch.Generator) -> Tensor:
        """Return `n` draws of `f` at each point, first dimension: for integrands without a closed form."""
        shape = (n, *torch.broadcast_shapes(self.mean.shape, self.variance.shape, self.threshold.shape))
        u, v, w = (torch.rand(shape, generator=generator, dtype=torch.float64) for _ in range(3))
        eps = torch.randn(shape, generator=generator, dtype=torch.float64)
        inside = self.mean + (2 * v - 1) * self.half_width
        # The tails outside the set have mass `threshold / 2` each: invert the tail at a uniform share of it.
        tail = -ndtri((v * self.threshold / 2).clamp_min(1e-300)) * self.variance.sqrt()
        label = torch.where(u < self.alpha, self.mean + torch.where(w < 0.5, -tail, tail), inside)
        return self.mean + self.signal_share * (label - self.mean) + self.sd_given_label() * eps

    def _zeta(self) -> Numbers:
        """Return half the length of the set in standard deviations of a label."""
        return -special_of(self.threshold).ndtri(self.threshold / 2)

    def _law(self) -> StandardLaw[Numbers]:
        """Return the posterior in standard units."""
        rho, tau = (namespace_of(share).sqrt(share) for share in (self.signal_share, self.noise_share))
        return StandardLaw(rho, tau, self._zeta(), self.threshold, self.alpha)
