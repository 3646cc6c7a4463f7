"""Options and early stopping of the multi-start search, and membership of a region."""

from typing import Self

import torch
from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from plumbline.core.options import Options


class SearchOptions(Options):
    """Options of the multi-start search in a box.

    Attributes:
        restarts: number of climbs.
        raw_samples: number of Sobol points that starts are chosen from; equal to `restarts` if none are chosen.
        maxiter: greatest number of L-BFGS iterations of a climb.
        patience: a climb stops when it would need more than so many steps like its last to reach the best value of all
            climbs; null for no early stopping. It applies to acquisition functions with hand-written gradients.
    """

    restarts: PositiveInt = 10
    raw_samples: PositiveInt = 256
    maxiter: PositiveInt = 200
    patience: PositiveFloat | None = None

    @model_validator(mode="after")
    def _starts_are_among_the_samples(self) -> Self:
        if self.restarts > self.raw_samples:
            raise ValueError(
                f"{self.restarts} starts cannot be chosen from {self.raw_samples} points: raise `raw_samples`"
            )
        return self


class EarlyStopping:
    """Early stopping of climbs that run together and cannot reach the best of them.

    Args:
        climbs: number of climbs.
        patience: number of steps like its last that a climb may need to reach the best value.
    """

    def __init__(self, climbs: int, patience: float) -> None:
        self.reached = torch.full((climbs,), -torch.inf, dtype=torch.float64)
        self.patience = patience

    def lost(self, climbs: list[int], values: Tensor) -> Tensor:
        """Return a mask of the climbs that stop, given their new values (`b`).

        A climb that tries too long a step, and reaches less than before, is not stopped for it.
        """
        increase = values - self.reached[climbs]
        self.reached[climbs] = torch.maximum(self.reached[climbs], values)
        return (increase > 0) & (self.reached.max() - values > self.patience * increase)


def inside(X: Tensor, region: Tensor) -> Tensor:
    """Return a mask of the points `X` (`n x d`) that lie in `region` (`2 x d`): `n` booleans."""
    return ((region[0] <= X) & (region[1] >= X)).all(dim=-1)
