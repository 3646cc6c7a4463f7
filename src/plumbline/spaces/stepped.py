"""A box some of whose inputs go in steps: it is searched like any box, and what is found is put on the nearest step.

GPyOpt, which CAL builds on, does so too. A model sees the points that were evaluated, not those that were meant.
"""

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.spaces.box import Box, uniform
from plumbline.spaces.search import SearchOptions

NEARLY = 1e-9
"""Of a step: what a sum of steps may be off by rounding."""


def on_steps(X: Tensor, bounds: Tensor, steps: Tensor) -> Tensor:
    """Return the points of `X` (`... x d`) on their nearest steps.

    Args:
        X: points.
        bounds: `2 x d`; steps are counted from the lower ones.
        steps: `d`, 0 for inputs without.
    """
    wide = steps.where(steps > 0, 1.0)
    stepped = bounds[0] + ((X - bounds[0]) / wide).round() * wide
    return stepped.where(steps > 0, X).clamp(bounds[0], bounds[1])


class Stepped(Box):
    """A box in steps.

    Attributes:
        steps: `d`, 0 for inputs without; counted from the lower bounds.
    """

    def __init__(self, bounds: Tensor, steps: Tensor) -> None:
        """Make the space of the points on `steps` (`d`) in `bounds` (`2 x d`)."""
        super().__init__(bounds)
        self.steps = steps

    def draw(self, n: int, history: History, generator: Generator) -> Tensor:
        """Return `n x d` independent points, each step as likely as any other."""
        around = torch.stack([self.bounds[0] - self.steps / 2, self.bounds[1] + self.steps / 2])
        return self._put(uniform(around, n, generator))

    def nearest(self, X: Tensor, history: History) -> Tensor:
        """Return the points on their nearest steps."""
        return self._put(X)

    def within(self, region: Tensor, history: History, least: int) -> "Stepped":
        """Return the steps inside of the region, or the nearest one to its middle where none is."""
        wide = self.steps.where(self.steps > 0, 1.0)
        low, high = (region - self.bounds[0]) / wide
        first, last = (low - NEARLY).ceil(), (high + NEARLY).floor()
        none = first > last
        middle = ((low + high) / 2).round()
        ends = self.bounds[0] + wide * torch.stack([middle.where(none, first), middle.where(none, last)])
        return Stepped(ends.where(self.steps > 0, region), self.steps)

    def ends(self, utility: AcquisitionFunction, q: int, options: SearchOptions, seed: int) -> Tensor:
        """Return where each climb ended, on the nearest steps, `r x q x d`, the greatest utility first."""
        return self._put(super().ends(utility, q, options, seed))

    def _put(self, X: Tensor) -> Tensor:
        return on_steps(X, self.bounds, self.steps)
