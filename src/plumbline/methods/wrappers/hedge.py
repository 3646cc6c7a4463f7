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
"""The proposal of each member, `q x d`; None for a member that failed."""


class HedgeOptions(PortfolioOptions):
    """Options of the weights.

    Attributes:
        learning_rate: eta, the increase of a log weight per reward of one standard deviation of the observations; at 0
            all members are equally likely.
    """

    learning_rate: NonNegativeFloat = 1.0


def rewards(process: GP, nominees: Nominees) -> Tensor:
    """Return the standardised posterior means at the members' proposals, averaged over each batch.

    A member that failed has the least reward of all, so that failing does not pay.
    """
    with torch.no_grad():
        means = [None if X is None else process.marginal_posterior(X).location.mean().item() for X in nominees]
    least = min(reward for reward in means if reward is not None)
    return torch.tensor([least if reward is None else reward for reward in means], dtype=torch.float64)


def known(nominees: Nominees, X: Tensor) -> bool:
    """Whether any proposed point is among `X`, `n x d`."""
    asked = torch.cat([nominee for nominee in nominees if nominee is not None])
    return bool((asked.unsqueeze(1) == X).all(-1).any())


@methods.register("hedge", HedgeOptions)
class Hedge(Portfolio):
    """A portfolio whose members propose with probabilities that grow with the posterior means at their nominees.

    All members search in each round. After its observation, each member's gain increases by the posterior mean at its
    own nominee (in standard deviations of the observations); its weight is `exp(learning_rate * gains)`. The mean is
    that of the next round in which members search, which a guard may delay. The surrogate must include the round: no
    gain changes if the evaluation failed, or a trust region has restarted.
    """

    options: HedgeOptions

    def __init__(self, domain: Domain, options: HedgeOptions) -> None:
        super().__init__(domain, options)
        self.gains = torch.zeros(len(self.members), dtype=torch.float64)
        self.asked: Nominees = []
        self.due: Nominees = []

    def search(self, utility: AcquisitionFunction, surrogate: GP, round: Round) -> Choice[GP]:
        """Return the proposal of a member drawn by its weight.

        Raises:
            PlumblineError: every member failed.
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
        """Mark the rewards of an observed round as due.

        Rounds of others (a guard, a restarted trust region) do not change them.
        """
        if self.asked:
            self.due, self.asked = self.asked, []

    def state_dict(self) -> dict[str, Any]:
        """Return the members' gains, and their nominees in the round whose rewards are due."""
        return {"gains": self.gains, "due": self.due}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore gains and nominees."""
        if state:
            self.gains, self.due = state["gains"], state["due"]
