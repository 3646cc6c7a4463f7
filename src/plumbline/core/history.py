"""What has been observed in a trial so far."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class History:
    """What has been observed.

    Attributes:
        X: `n x d`, in the problem's bounds.
        Y: `n x m` noisy values, to be maximised; NaN where an outcome was not asked for, or its evaluation failed.
        initial: how many of the rows are the initial design; the method asked for the others.
    """

    X: Tensor
    Y: Tensor
    initial: int = 0

    def __len__(self) -> int:
        return len(self.X)

    @property
    def queries(self) -> Tensor:
        """The points that the method asked for, without the initial design."""
        return self.X[self.initial :]

    def join(self, X: Tensor, Y: Tensor) -> "History":
        """Return the history with more rows."""
        return History(torch.cat([self.X, X]), torch.cat([self.Y, Y]), self.initial)
