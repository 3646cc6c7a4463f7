"""Forecasts of several outcomes that are judged one by one, as CBO's code does."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.calibration.predictive import Predictive


@dataclass(frozen=True)
class MarginalPredictive:
    """A forecast of `n` points an outcome, each with sets of its own level.

    Attributes:
        outcomes: one an outcome, `m`.
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
        """Return the share of the outcomes whose set of level `1 - alpha` holds its entry of `y` (`n x m`): `n`."""
        return torch.stack([one.covers(y[:, i], alpha) for i, one in enumerate(self.outcomes)]).mean(dim=0)

    def width(self, alpha: float) -> Tensor:
        """Return the product of the lengths of the sets, `n`; 0 where one of them is empty."""
        widths = torch.stack([one.width(alpha) for one in self.outcomes])
        return torch.where((widths == 0).any(dim=0), 0.0, widths.prod(dim=0))
