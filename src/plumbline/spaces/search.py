"""How hard a space is searched, and which points lie in a region of it."""

from typing import Self

import torch
from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from plumbline.core.options import Options


class SearchOptions(Options):
    """Options of the multi-start search in a box.

    Attributes:
        restarts: climbs.
        raw_samples: Sobol points that their starts are chosen from; as many as there are climbs where none is chosen.
        maxiter: L-BFGS iterations of a climb.
        patience: a climb is given up where it would take more than so many steps like its last to come to the best that
            any has reached; null: none is. Of utilities with a gradient by hand.
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
    """Climbs that run together, and what each has reached.

    Args:
        climbs: how many.
        patience: steps like its last that a climb is given to come to the best.
    """

    def __init__(self, climbs: int, patience: float) -> None:
        self.reached = torch.full((climbs,), -torch.inf, dtype=torch.float64)
        self.patience = patience

    def lost(self, climbs: list[int], values: Tensor) -> Tensor:
        """Return which of some climbs, that came to new values (`b`), have no prospect of coming to the best.

        One that tries a step too long, and comes to less than it had, is not judged by that.
        """
        gain = values - self.reached[climbs]
        self.reached[climbs] = torch.maximum(self.reached[climbs], values)
        return (gain > 0) & (self.reached.max() - values > self.patience * gain)


def inside(X: Tensor, region: Tensor) -> Tensor:
    """Return which of the points `X` (`n x d`) lie in `region` (`2 x d`): `n` booleans."""
    return ((region[0] <= X) & (region[1] >= X)).all(dim=-1)
