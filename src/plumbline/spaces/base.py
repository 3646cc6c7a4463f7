"""The interface of search spaces: random points, remaining points, restriction to a region, and maximisation."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Self

from botorch.acquisition import AcquisitionFunction
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.spaces.search import SearchOptions


class Space(ABC):
    """A set of points with bounding box `bounds` (`2 x d`).

    The allowed queries may depend on earlier ones: a row of a table is allowed once, and blocks take turns. `settle`
    returns the space of one round, and only a settled space is searched.
    """

    finite: ClassVar[bool] = False
    """Whether the space is a list of points, each allowed as a query once."""

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
        """Return `n x d` random allowed points; fewer where fewer are left."""

    @abstractmethod
    def nearest(self, X: Tensor, history: History) -> Tensor:
        """Return, for each row of `X` (`n x d`), an allowed point near it, all of them distinct."""

    @abstractmethod
    def settle(self, history: History, generator: Generator) -> "Space":
        """Return the space of one round."""

    @abstractmethod
    def within(self, region: Tensor, history: History, least: int) -> Self:
        """Return the part inside `region` (`2 x d`), or the full space where fewer than `least` points are inside."""

    @abstractmethod
    def ends(self, acquisition: AcquisitionFunction, q: int, options: SearchOptions, seed: int) -> Tensor:
        """Return the end of each climb of an acquisition function in a settled space, `r x q x d`, the best first.

        The ends are the same for the same seed.
        """

    def maximise(self, acquisition: AcquisitionFunction, q: int, options: SearchOptions, seed: int) -> Tensor:
        """Return the `q x d` maximiser of an acquisition function in a settled space; the same for the same seed."""
        return self.ends(acquisition, q, options, seed)[0]

    @abstractmethod
    def without(self, X: Tensor) -> Self:
        """Return a settled space without the rows of `X` (`n x d`), if each is allowed only once."""
