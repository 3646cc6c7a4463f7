"""A portfolio by multiplicative weights: Hoffman, Brochu & de Freitas (2011), GP-Hedge."""

from dataclasses import replace
from typing import Any

import torch
from botorch.acquisition import AcquisitionFunction
from pydantic import NonNegativeFloat
from torch import Tensor

from plumbline.methods.base import Domain, methods
from plumbline.methods.composed import Choice, Round
from plumbline.methods.wrappers.portfolio import Portfolio, PortfolioOptions
from plumbline.models.gp.process import GP

Nominees = list[Tensor | None]
"""What each member would have asked for, `q x d`; None of one that was left out."""


class HedgeOptions(PortfolioOptions):
    """Options of the weights.

    Attributes:
        learning_rate: eta, by which a gain of one standard deviation of the observations raises the logarithm of a
            weight; at 0 all members are as likely as each other.
    """

    learning_rate: NonNegativeFloat = 1.0


def rewards(process: GP, nominees: Nominees) -> Tensor:
    """Return the posterior means, standardised, of what members asked for, averaged over each batch.

    One that was left out has the least reward of all: to fail must not pay.
    """
    with torch.no_grad():
        found = [None if X is None else process.marginal_posterior(X).location.mean().item() for X in nominees]
    least = min(reward for reward in found if reward is not None)
    return torch.tensor([least if reward is None else reward for reward in found], dtype=torch.float64)


def known(nominees: Nominees, X: Tensor) -> bool:
    """Return whether any of what was asked for is among some points, `n x d`."""
    asked = torch.cat([nominee for nominee in nominees if nominee is not None])
    return bool((asked.unsqueeze(1) == X).all(-1).any())


@methods.register("hedge", HedgeOptions)
class Hedge(Portfolio):
    """A portfolio whose members propose with chances that grow with the means found where they would have asked.

    All members search in each round. When the round has been observed, each of them gains the posterior mean at its own
    nominee (in standard deviations of the observations), and `exp(learning_rate * gains)` is its weight. The mean is
    that of the next round in which they search, where one in between was a guard's. It must be of a surrogate that
    knows the round: nobody gains where the evaluation failed, or a trust region has begun anew.
    """

    options: HedgeOptions

    def __init__(self, domain: Domain, options: HedgeOptions) -> None:
        super().__init__(domain, options)
        self.gains = torch.zeros(len(self.members), dtype=torch.float64)
        self.asked: Nominees = []
        self.due: Nominees = []

    def search(self, utility: AcquisitionFunction, surrogate: GP, round: Round) -> Choice[GP]:
        """Return what a member asks for that is drawn by its weight.

        Raises:
            PlumblineError: no member came to a proposal.
        """
        if self.due and known(self.due, round.data.X):
            self.gains = self.gains + rewards(surrogate, self.due)
        self.due = []
        choices = [self.proposed(place, surrogate, round) for place in range(len(self.members))]
        able = torch.tensor([choice is not None for choice in choices])
        if not bool(able.any()):
            raise self.nobody()
        weights = (self.options.learning_rate * self.gains).masked_fill(~able, -torch.inf).softmax(0)
        drawn = int(torch.multinomial(weights, 1, generator=round.generator))
        chosen = choices[drawn]
        assert chosen is not None
        self.asked = [None if choice is None else choice.X for choice in choices]
        return replace(chosen, notes={**chosen.notes, "member": float(drawn), **self.shares(weights)})

    def tell(self, X: Tensor, Y: Tensor) -> None:
        """Take note that what was asked for has been observed: its rewards are due.

        What others asked for (a guard, a trust region that begins anew) leaves due what is.
        """
        if self.asked:
            self.due, self.asked = self.asked, []

    def state_dict(self) -> dict[str, Any]:
        """Return what members gained, and what they asked for in the round whose rewards are due."""
        return {"gains": self.gains, "due": self.due}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the same weights."""
        if state:
            self.gains, self.due = state["gains"], state["due"]
