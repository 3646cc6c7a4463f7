"""Options and early stopping of the multi-start search, and membership of a region."""

from typing import NamedTuple, Self

import torch
from pydantic import Field, PositiveFloat, PositiveInt, model_validator
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


class AroundIncumbent(Options):
    """Raw samples around the incumbent, where a narrow peak of an acquisition function is often found.

    Attributes:
        share: share of the raw samples.
        closest, farthest: least and greatest standard deviation of their distance, in sides of the box. It is
            log-uniform over the samples.
    """

    share: float = Field(0.125, gt=0.0, lt=1.0)
    closest: PositiveFloat = 1e-4
    farthest: PositiveFloat = 0.1

    @model_validator(mode="after")
    def _distances_are_in_order(self) -> Self:
        if self.closest > self.farthest:
            raise ValueError(f"`closest`, {self.closest:g}, must be at most `farthest`, {self.farthest:g}")
        return self


class IncumbentSearchOptions(SearchOptions):
    """Options of a multi-start search that knows the incumbent.

    Attributes:
        around_incumbent: raw samples around the incumbent in a box; null for none, as in the documents' searches.
    """

    around_incumbent: AroundIncumbent | None = None


class Neighbourhood(NamedTuple):
    """Where a search looks besides everywhere.

    Attributes:
        incumbent: `d`.
        options: how many raw samples lie around it, and how near.
    """

    incumbent: Tensor
    options: AroundIncumbent


class MultiStart(NamedTuple):
    """A search by several climbs, from the best of many points; the same for the same seed.

    Attributes:
        q: size of a batch.
        options: how hard to look.
        seed: of the starts.
        around: where raw samples lie besides everywhere, in a box; None for no such place.
    """

    q: int
    options: SearchOptions
    seed: int
    around: Neighbourhood | None = None


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
