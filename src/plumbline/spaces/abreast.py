"""Climbs of several functions that are evaluated together, none of whose digits depends on another."""

from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from plumbline.core.numbers import Array


class Functions(Protocol):
    """m functions, each evaluated at points of its own; the numbers of one do not depend on the others."""

    def only(self, rows: Sequence[int]) -> Self:
        """Return the functions with numbers `rows`."""
        ...

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the values at `m x b x d` points, `m x b`, and the derivatives, `m x b x d`."""
        ...


class Abreast:
    """The evaluation of functions with the same number of climbs each.

    All climbs of a function are evaluated while one of them goes on: BLAS may choose its routine by the number of
    points, and the last digit of one climb would depend on when others end.

    Args:
        functions: m functions.
        number: m.
        climbs: r, the number of climbs of each.
        dim: d.
    """

    def __init__(self, functions: Functions, number: int, climbs: int, dim: int) -> None:
        self.functions = functions
        self.climbs = climbs
        self.points = np.zeros((number, climbs, dim))
        self.going = (np.arange(number), functions)

    def __call__(self, X: Tensor, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return the values at `p x 1 x d` points of the climbs `rows`, `p`, and the derivatives, `p x 1 x d`."""
        places = np.array(rows)
        self.points.reshape(-1, self.points.shape[-1])[places] = X[:, 0].numpy()
        owner = places // self.climbs
        first = np.append(True, owner[1:] != owner[:-1])
        going, functions = self._still(owner[first])
        value, gradient = functions.value_and_gradient(self.points[going])
        at = first.cumsum() - 1, places % self.climbs
        return torch.from_numpy(value[at]), torch.from_numpy(gradient[at][:, None])

    def _still(self, owners: NDArray[np.int64]) -> tuple[NDArray[np.int64], Functions]:
        """Return the functions with climbs that go on, and their numbers, `owners`."""
        if len(owners) != len(self.going[0]):
            self.going = owners, self.functions.only(owners.tolist())
        return self.going
