"""A portfolio whose members are drawn by weights that grow with their successes: BOWH, dynamic scheduling."""

import math
from dataclasses import replace
from typing import Any

import torch
from botorch.acquisition import AcquisitionFunction
from pydantic import Field
from torch import Generator, Tensor

from plumbline.methods.base import Domain, methods
from plumbline.methods.composed import Choice, Round
from plumbline.methods.wrappers.portfolio import Portfolio, PortfolioOptions, best
from plumbline.models.gp.process import GP


class RouletteOptions(PortfolioOptions):
    """Options of the weights.

    Attributes:
        factor: factor of a member's weight at a success; the document does not state the update. At 1 all members are
            equally likely.
    """

    factor: float = Field(default=2.0, ge=1.0, allow_inf_nan=False)


@methods.register("roulette", RouletteOptions)
class Roulette(Portfolio):
    """A portfolio whose member i proposes with probability `w_i / sum_j w_j`; w_i grows where its round improves.

    Weights are equal at first. Only the drawn member searches; if it fails numerically, another one is drawn.
    """

    options: RouletteOptions

    def __init__(self, domain: Domain, options: RouletteOptions) -> None:
        super().__init__(domain, options)
        self.successes = [0] * len(self.members)
        self.drawn = 0
        self.to_beat: float | None = None

    def search(self, utility: AcquisitionFunction, surrogate: GP, round: Round) -> Choice[GP]:
        """Return the proposal of a member drawn by its weight.

        Raises:
            PlumblineError: every member failed.
        """
        chances = (math.log(self.options.factor) * torch.tensor(self.successes, dtype=torch.float64)).softmax(0)
        drawable = chances.clamp_min(torch.finfo(torch.float64).tiny)
        # Without replacement, so that each member is tried once. A separate stream lets the member search as it would
        # alone.
        stream = Generator().manual_seed(round.seed)
        for place in torch.multinomial(drawable, len(chances), generator=stream).tolist():
            choice = self.proposed(place, surrogate, round)
            if choice is not None:
                self.drawn, self.to_beat = place, best(round.history.Y)
                return replace(choice, notes={**choice.notes, "member": float(place), **self.shares(chances)})
        raise self.nobody()

    def tell(self, X: Tensor, Y: Tensor) -> None:
        """Count a success of the drawn member; observations that it did not propose do not count."""
        to_beat, self.to_beat = self.to_beat, None
        if to_beat is not None and best(Y) > to_beat:
            self.successes[self.drawn] += 1

    def state_dict(self) -> dict[str, Any]:
        """Return the number of successes of each member."""
        return {"successes": list(self.successes)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the same weights."""
        if state:
            self.successes = list(state["successes"])
