"""Queries and observations of a trial."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class History:
    """The queries and observations of a trial so far.

    Attributes:
        X: `n x d`, in the problem's bounds.
        Y: `n x m` noisy values, to be maximised; NaN where an outcome was not evaluated, or its evaluation failed.
        initial: number of rows of the initial design; the method proposed the others.
    """

    X: Tensor
    Y: Tensor
    initial: int = 0

    def __len__(self) -> int:
        return len(self.X)

    @property
    def queries(self) -> Tensor:
        """The points that the method proposed, without the initial design."""
        return self.X[self.initial :]

    def join(self, X: Tensor, Y: Tensor) -> "History":
        """Return the history with the rows `X` and `Y` appended."""
        return History(torch.cat([self.X, X]), torch.cat([self.Y, Y]), self.initial)
