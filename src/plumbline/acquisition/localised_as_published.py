"""LOCBO's expected improvement as its published code has it: departures from its text, one by one."""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from plumbline.acquisition.localised import CalibratedPosterior
from plumbline.calibration import gaussian

Departure = Literal["kappa-twice", "interval-clipping", "operator-precedence"]

DEPARTURES: tuple[Departure, ...] = ("kappa-twice", "interval-clipping", "operator-precedence")

WIDEST = 3.4
"""Half the length of the set, in standard deviations, where the threshold is not positive."""


@dataclass(frozen=True)
class PublishedPosterior(CalibratedPosterior):
    """LOCBO's posterior with departures, whose mass need not be one; `threshold` may leave (0, 1] under clipping.

    Attributes:
        departures: `interval-clipping`: no positive threshold fixes the set and drops the tails, and one above 1
            inverts the set, so that no label lies inside; `operator-precedence`: the density of labels inside is
            `1/U - L` instead of `1 / (U - L)`, in standardised units.
    """

    departures: frozenset[Departure] = frozenset()

    def expected_improvement(self, best: Tensor) -> Tensor:
        """Return the expected gain over `best`, with the departures."""
        used, inside, outside = self._masses()
        of = CalibratedPosterior(self.mean, self.variance, self.noise, used, self.alpha)
        if "operator-precedence" in self.departures:
            low, high = of.mean - of.half_width, of.mean + of.half_width
            inside = inside * (1 / high - low) * (high - low)
        # The posterior is a mixture of the two, whatever their masses.
        within, beyond = (replace(of, alpha=alpha).expected_improvement(best) for alpha in (0.0, 1.0))
        return inside * within + outside * beyond

    def _masses(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the threshold in use, and the masses inside and outside the set."""
        raw, alpha = self.threshold, self.alpha
        one = torch.ones_like(raw)
        if "interval-clipping" not in self.departures:
            return raw, (1 - alpha) * one, alpha * one
        widest = 2 * gaussian.cdf(-WIDEST * one)
        used = torch.where(raw > 0, raw, widest).clamp(max=1.0)
        return used, (1 - alpha) * one * (raw < 1), alpha * one * (raw > 0) / raw.clamp_min(1.0)
