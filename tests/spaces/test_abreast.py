"""Functions that are evaluated together: each at its own points, and only while one of its climbs goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import torch

from plumbline.core.numbers import Array
from plumbline.spaces.abreast import Abreast


@dataclass(frozen=True)
class Multiples:
    """`factor |x|^2`, with a log of the numbers of functions that were evaluated."""

    factors: Array
    evaluated: list[int] = field(default_factory=list)

    def only(self, rows: Sequence[int]) -> Self:
        return replace(self, factors=self.factors[rows])

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        self.evaluated.append(len(X))
        return self.factors * np.square(X).sum(-1), 2 * self.factors[..., None] * X


def test_climbs_have_the_values_of_their_functions() -> None:
    functions = Multiples(np.array([[1.0], [10.0], [100.0]]))
    abreast = Abreast(functions, number=3, climbs=2, dim=2)
    X = torch.arange(12, dtype=torch.float64).view(6, 1, 2)
    factors = functions.factors.repeat(2)
    for rows in [0, 1, 2, 3, 4, 5], [1, 2, 3, 5], [1, 4], [4]:
        values, gradients = abreast(X[rows], rows)
        of = torch.from_numpy(factors[rows])
        torch.testing.assert_close(values, of * X[rows].square().sum(dim=(-2, -1)))
        torch.testing.assert_close(gradients, 2 * of[:, None, None] * X[rows])
    assert functions.evaluated == [3, 3, 2, 1]
