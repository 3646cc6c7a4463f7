"""A box with some stepped inputs: it is searched like any box, and proposals are rounded to the nearest step.

GPyOpt, which CAL builds on, does the same. Models are fitted to the rounded points, which were evaluated.
"""

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.spaces.box import Box, uniform
from plumbline.spaces.search import MultiStart

NEARLY = 1e-9
"""Tolerance for rounding errors in sums of steps, as a share of a step."""


def on_steps(X: Tensor, bounds: Tensor, steps: Tensor) -> Tensor:
    """Return the points `X` (`... x d`) rounded to their nearest steps.

    Args:
        X: points.
        bounds: `2 x d`; steps are counted from the lower bounds.
        steps: `d`, 0 for continuous inputs.
    """
    wide = steps.where(steps > 0, 1.0)
    stepped = bounds[0] + ((X - bounds[0]) / wide).round() * wide
    return stepped.where(steps > 0, X).clamp(bounds[0], bounds[1])


class Stepped(Box):
    """A box with stepped inputs.

    Attributes:
        steps: `d`, 0 for continuous inputs; counted from the lower bounds.
    """

    def __init__(self, bounds: Tensor, steps: Tensor, units: Tensor | None = None) -> None:
        """Create the space of the points on `steps` (`d`) in `bounds` (`2 x d`); `units` as in `Box`.

        Raises:
            PlumblineError: the upper bound of a stepped input is on no step.
        """
        super().__init__(bounds, units)
        number = (bounds[1] - bounds[0]) / steps.where(steps > 0, torch.inf)
        if (wrong := (number - number.round()).abs() > NEARLY * number.clamp_min(1.0)).any():
            i = int(wrong.nonzero()[0])
            low, high, step = (float(one[i]) for one in (*bounds, steps))
            raise PlumblineError(f"input {i + 1}: {low:g} to {high:g} is no multiple of its step, {step:g}")
        self.steps = steps

    def draw(self, n: int, history: History, generator: Generator) -> Tensor:
        """Return `n x d` independent points, with equal probability for each step."""
        around = torch.stack([self.bounds[0] - self.steps / 2, self.bounds[1] + self.steps / 2])
        return self.rounded(uniform(around, n, generator))

    def nearest(self, X: Tensor, history: History) -> Tensor:
        """Return the points rounded to their nearest steps; several may be one."""
        return self.rounded(X)

    def within(self, region: Tensor, history: History, least: int) -> "Stepped":
        """Return the steps inside the region, or the step nearest to its middle where none is inside."""
        wide = self.steps.where(self.steps > 0, 1.0)
        low, high = (region - self.bounds[0]) / wide
        first, last = (low - NEARLY).ceil(), (high + NEARLY).floor()
        none = first > last
        middle = ((low + high) / 2).round()
        ends = self.bounds[0] + wide * torch.stack([middle.where(none, first), middle.where(none, last)])
        return Stepped(ends.where(self.steps > 0, region), self.steps, self.units)

    def ends(self, acquisition: AcquisitionFunction, search: MultiStart) -> Tensor:
        """Return the end of each climb, rounded to the nearest steps, `r x q x d`, the best first."""
        return self.rounded(super().ends(acquisition, search))

    def rounded(self, X: Tensor) -> Tensor:
        """Return the points rounded to their nearest steps."""
        return on_steps(X, self.bounds, self.steps)
