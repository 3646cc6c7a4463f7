"""A method of its own."""

import torch
from pydantic import PositiveFloat

from plumbline.core.options import Options
from plumbline.methods.base import Method, Proposal, methods


class WalkOptions(Options):
    """Options of the random walk.

    Attributes:
        step: standard deviation of a step, where the box has sides of length one.
    """

    step: PositiveFloat = 0.1


@methods.register("example-walk", WalkOptions)
class Walk(Method):
    """Normal steps from the best point so far."""

    takes = "one objective"
    spaces = "a box"

    def ask(self, history, q, generator):
        """Return `q` steps; all randomness is from `generator`."""
        low, high = self.domain.bounds
        best = self.recommend(history, generator)
        noise = torch.randn(q, len(low), dtype=torch.float64, generator=generator)
        return Proposal((best + self.options.step * (high - low) * noise).clamp(low, high))
