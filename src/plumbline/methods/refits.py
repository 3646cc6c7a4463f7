"""Hyperparameters that are fitted in some rounds alone, as in LOCBO's published script for the radio network."""

import torch
from torch import Tensor

from plumbline.history import History
from plumbline.models.exact_fit import fit_process
from plumbline.models.exact_options import ModelOptions, unknowns_of
from plumbline.models.exact_process import ExactProcess, conditioned
from plumbline.models.marginal_likelihood import Hyperparameters
from plumbline.models.units import units_of


class Refits:
    """A process whose hyperparameters are fitted in every so many-th round; in others data are added to it alone.

    Before the first of these rounds hyperparameters are at their initial values. Everything follows from the history:
    a trial that was killed fits anew what it had fitted. The round is the number of the next query.
    """

    def __init__(self, every: int, options: ModelOptions, bounds: Tensor) -> None:
        """Fit in the rounds that `every` divides.

        Args:
            every: a number of rounds.
            options: kernel and priors.
            bounds: `2 x d`.
        """
        self.every = every
        self.options = options
        self.bounds = bounds
        self._last: tuple[History, Hyperparameters] | None = None

    def process(self, data: History) -> ExactProcess:
        """Return the process of what has been observed."""
        since = (len(data) - data.initial + 1) % self.every
        if since == 0:
            return fit_process(data.X, data.Y, self.bounds, self.options)
        units = units_of(self.options.box(self.bounds), data.Y[:, 0])
        return conditioned(data.X, data.Y, self.bounds, self.options.kernel, self._at(data, since), units)

    def _at(self, data: History, since: int) -> Hyperparameters:
        """Return the hyperparameters that were fitted so many rounds before, or the initial ones."""
        n = len(data) - since
        if n < data.initial:
            unknowns = unknowns_of(data.X.shape[-1], self.options)
            return unknowns.values(unknowns.start())
        then = History(data.X[:n], data.Y[:n], data.initial)
        if self._last is None or not _same(self._last[0], then):
            self._last = then, fit_process(then.X, then.Y, self.bounds, self.options).at
        return self._last[1]


def _same(one: History, other: History) -> bool:
    return torch.equal(one.X, other.X) and torch.equal(one.Y, other.Y)
