"""A portfolio that keeps its member while observations improve: BOWH, dynamic scheduling."""

from dataclasses import replace
from typing import Any

from botorch.acquisition import AcquisitionFunction
from pydantic import PositiveInt
from torch import Tensor

from plumbline.methods.base import Domain, methods
from plumbline.methods.composed import Choice, Round
from plumbline.methods.wrappers.portfolio import Portfolio, PortfolioOptions, best
from plumbline.models.gp.process import GP


class RelayOptions(PortfolioOptions):
    """Options of the rule.

    Attributes:
        patience: number of successive rounds without a better observation before the next member's turn.
    """

    patience: PositiveInt = 1


@methods.register("relay", RelayOptions)
class Relay(Portfolio):
    """A portfolio whose members take turns: one proposes until it fails to improve on the best observation.

    The first member follows the last. A member that fails numerically hands over to the next at once.
    """

    options: RelayOptions

    def __init__(self, domain: Domain, options: RelayOptions) -> None:
        super().__init__(domain, options)
        self.place = 0
        self.failures = 0
        self.to_beat: float | None = None

    def search(self, utility: AcquisitionFunction, surrogate: GP, round: Round) -> Choice[GP]:
        """Return the proposal of the member whose turn it is.

        Raises:
            PlumblineError: every member failed.
        """
        for _ in self.members:
            choice = self.proposed(self.place, surrogate, round)
            if choice is not None:
                self.to_beat = best(round.history.Y)
                return replace(choice, notes={**choice.notes, "member": float(self.place)})
            self._hand_over()
        raise self.nobody()

    def tell(self, X: Tensor, Y: Tensor) -> None:
        """Count a failure, or reset the count after a success. Observations that it did not propose do not count."""
        to_beat, self.to_beat = self.to_beat, None
        if to_beat is None:
            return
        self.failures = 0 if best(Y) > to_beat else self.failures + 1
        if self.failures >= self.options.patience:
            self._hand_over()

    def _hand_over(self) -> None:
        self.place, self.failures = (self.place + 1) % len(self.members), 0

    def state_dict(self) -> dict[str, Any]:
        """Return the current member and its number of successive failures."""
        return {"place": self.place, "failures": self.failures}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the current member."""
        if state:
            self.place, self.failures = state["place"], state["failures"]
