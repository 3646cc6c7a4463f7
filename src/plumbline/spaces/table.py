"""A table of rows, each allowed as a query once; enumeration maximises an acquisition function."""

from typing import ClassVar

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.optim import optimize_acqf_discrete
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.spaces.base import Space
from plumbline.spaces.search import MultiStart, inside

BLOCK = 64
"""Points that are looked up at once: to compare all rows with all rows would take a byte for each pair and input."""

NONE = -1
"""Number of the row of a point that is none."""


def row_numbers(rows: Tensor, X: Tensor) -> Tensor:
    """Return the number of the first of `rows` (`N x d`) that each point is, or `NONE`: `X: batch x d -> batch`."""
    if not len(rows):
        return torch.full(X.shape[:-1], NONE)
    numbers = []
    for points in X.reshape(-1, X.shape[-1]).split(BLOCK):
        same = (points.unsqueeze(-2) == rows).all(dim=-1)
        numbers.append(torch.where(same.any(dim=-1), same.to(torch.uint8).argmax(dim=-1), NONE))
    return torch.cat(numbers).reshape(X.shape[:-1])


def without(rows: Tensor, X: Tensor) -> Tensor:
    """Return the `rows` (`N x d`) that are none of the points `X` (`n x d`)."""
    return rows[row_numbers(X, rows) == NONE]


class Table(Space):
    """Rows to choose from.

    Attributes:
        rows: `N x d`.
    """

    finite: ClassVar[bool] = True

    def __init__(self, bounds: Tensor, rows: Tensor) -> None:
        """Create the space of `rows` (`N x d`) inside `bounds` (`2 x d`)."""
        super().__init__(bounds)
        self.rows = rows

    @property
    def size(self) -> float:
        """Number of rows."""
        return len(self.rows)

    def rows_outside(self, X: Tensor) -> Tensor:
        """Return a mask of the points `X` (`n x d`) that are no rows: `n` booleans."""
        return row_numbers(self.rows, X) == NONE

    def remaining(self, history: History) -> Tensor:
        """Return the rows that have not been evaluated: `n x d`.

        Raises:
            PlumblineError: all rows have been evaluated.
        """
        rest = without(self.rows, history.X)
        if len(rest) == 0:
            raise PlumblineError("every row of the table has been evaluated: lower `rounds` or enlarge `pool`")
        return rest

    def draw(self, n: int, history: History, generator: Generator) -> Tensor:
        """Return `n x d` of the remaining rows, drawn without replacement."""
        rest = self.remaining(history)
        return rest[torch.randperm(len(rest), generator=generator)[:n]]

    def nearest(self, X: Tensor, history: History) -> Tensor:
        """Return the row nearest to each point of `X` (`n x d`) in the unit cube, each row once: at most `n x d`."""
        rest = self.remaining(history)
        spread = self.bounds[1] - self.bounds[0]
        chosen: list[int] = []
        for distances in torch.cdist(X / spread, rest / spread)[: len(rest)]:
            distances[chosen] = torch.inf
            chosen.append(int(distances.argmin()))
        return rest[chosen]

    def settle(self, history: History, generator: Generator) -> "Table":
        """Return the remaining rows."""
        return Table(self.bounds, self.remaining(history))

    def within(self, region: Tensor, history: History, least: int) -> "Table":
        """Return the remaining rows in the region, or all remaining rows where these are fewer than `least`."""
        rest = self.remaining(history)
        near = rest[inside(rest, region)]
        return Table(region, near) if len(near) >= least else Table(self.bounds, rest)

    def ends(self, acquisition: AcquisitionFunction, search: MultiStart) -> Tensor:
        """Return the rows of greatest acquisition value, chosen sequentially, as one search: at most `1 x q x d`."""
        return best_rows(acquisition, self.rows, search.q).unsqueeze(0)

    def without(self, X: Tensor) -> "Table":
        """Return the other rows."""
        return Table(self.bounds, without(self.rows, X))


def best_rows(acquisition: AcquisitionFunction, rows: Tensor, q: int) -> Tensor:
    """Return the `q x d` of `rows` (`N x d`) that maximise `acquisition`, chosen sequentially."""
    X, _ = optimize_acqf_discrete(acquisition, q=q, choices=rows, return_acq_values=False)
    return X
