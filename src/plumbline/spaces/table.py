"""A table of rows, each of which may be asked for once: enumeration finds where a utility is greatest."""

from typing import ClassVar

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.optim import optimize_acqf_discrete
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.spaces.base import Space
from plumbline.spaces.search import SearchOptions, inside


class Table(Space):
    """Rows to choose from.

    Attributes:
        rows: `N x d`.
    """

    finite: ClassVar[bool] = True

    def __init__(self, bounds: Tensor, rows: Tensor) -> None:
        """Make the space of `rows` (`N x d`) inside of `bounds` (`2 x d`)."""
        super().__init__(bounds)
        self.rows = rows

    @property
    def size(self) -> float:
        """Number of rows."""
        return len(self.rows)

    def remaining(self, history: History) -> Tensor:
        """Return the rows that were not evaluated yet: `n x d`.

        Raises:
            PlumblineError: none is left.
        """
        seen = (self.rows.unsqueeze(1) == history.X).all(dim=-1).any(dim=-1)
        rest = self.rows[~seen]
        if len(rest) == 0:
            raise PlumblineError("every row of the table has been evaluated: lower `rounds` or enlarge `pool`")
        return rest

    def draw(self, n: int, history: History, generator: Generator) -> Tensor:
        """Return `n x d` rows that are left, drawn without replacement."""
        rest = self.remaining(history)
        return rest[torch.randperm(len(rest), generator=generator)[:n]]

    def nearest(self, X: Tensor, history: History) -> Tensor:
        """Return the row nearest to each of `X` (`n x d`) in the unit cube, each row once: at most `n x d`."""
        rest = self.remaining(history)
        spread = self.bounds[1] - self.bounds[0]
        chosen: list[int] = []
        for distances in torch.cdist(X / spread, rest / spread)[: len(rest)]:
            distances[chosen] = torch.inf
            chosen.append(int(distances.argmin()))
        return rest[chosen]

    def settle(self, history: History, generator: Generator) -> "Table":
        """Return the rows that are left."""
        return Table(self.bounds, self.remaining(history))

    def within(self, region: Tensor, history: History, least: int) -> "Table":
        """Return the rows that are left in the region, or all that are left where those are fewer than `least`."""
        rest = self.remaining(history)
        near = rest[inside(rest, region)]
        return Table(region, near) if len(near) >= least else Table(self.bounds, rest)

    def ends(self, utility: AcquisitionFunction, q: int, options: SearchOptions, seed: int) -> Tensor:
        """Return the rows of greatest utility, one after another: there is one search, at most `1 x q x d`."""
        return best_rows(utility, self.rows, q).unsqueeze(0)

    def without(self, X: Tensor) -> "Table":
        """Return the other rows."""
        return Table(self.bounds, self.rows[(self.rows.unsqueeze(1) != X).any(dim=-1).all(dim=-1)])


def best_rows(utility: AcquisitionFunction, rows: Tensor, q: int) -> Tensor:
    """Return the `q x d` of `rows` (`N x d`) that maximise `utility`, one after another."""
    X, _ = optimize_acqf_discrete(utility, q=q, choices=rows, return_acq_values=False)
    return X
