"""What every space can do: draw points, say what is left, cut itself to a region, and find where a utility peaks."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Self

from botorch.acquisition import AcquisitionFunction
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.spaces.search import SearchOptions


class Space(ABC):
    """A set of points, `bounds` (`2 x d`) around it.

    What may be asked for can depend on what was asked: a row of a table is there once, and blocks take turns. `settle`
    says what there is to choose from in one round; only a settled space is searched.
    """

    finite: ClassVar[bool] = False
    """Whether it is a list of points of which each may be asked for once."""

    def __init__(self, bounds: Tensor) -> None:
        self.bounds = bounds

    @property
    def dim(self) -> int:
        """Number of inputs, d."""
        return self.bounds.shape[-1]

    @property
    def size(self) -> float:
        """Number of points of a settled space; infinite for a box."""
        return math.inf

    @abstractmethod
    def draw(self, n: int, history: History, generator: Generator) -> Tensor:
        """Return `n x d` random points that may be asked for; fewer where fewer are left."""

    @abstractmethod
    def nearest(self, X: Tensor, history: History) -> Tensor:
        """Return, for each row of `X` (`n x d`), a point near to it that may be asked for, no two alike."""

    @abstractmethod
    def settle(self, history: History, generator: Generator) -> "Space":
        """Return the space of one round."""

    @abstractmethod
    def within(self, region: Tensor, history: History, least: int) -> Self:
        """Return the part inside `region` (`2 x d`), or all of it where fewer than `least` points are inside."""

    @abstractmethod
    def ends(self, utility: AcquisitionFunction, q: int, options: SearchOptions, seed: int) -> Tensor:
        """Return where each climb to a peak of the utility in a settled space ended: `r x q x d`, the greatest first.

        It is the same for the same seed.
        """

    def maximise(self, utility: AcquisitionFunction, q: int, options: SearchOptions, seed: int) -> Tensor:
        """Return the `q x d` points of greatest utility of a settled space; the same for the same seed."""
        return self.ends(utility, q, options, seed)[0]

    @abstractmethod
    def without(self, X: Tensor) -> Self:
        """Return a settled space without the rows of `X` (`n x d`), where they could be asked for only once."""
