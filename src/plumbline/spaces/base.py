"""The interface of search spaces: random points, remaining points, restriction to a region, and maximisation."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Self

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError, kind_of
from plumbline.core.history import History
from plumbline.spaces.search import MultiStart

ROUNDING = 1e-9
"""Distance from a bound, in units of the width, up to which a point counts as inside."""


class Space(ABC):
    """A set of points with bounding box `bounds` (`2 x d`).

    The allowed queries may depend on earlier ones: a row of a table is allowed once, and blocks take turns. `settle`
    returns the space of one round, and only a settled space is searched.
    """

    finite: ClassVar[bool] = False
    """Whether the space is a list of points, each allowed as a query once."""

    sequential: ClassVar[bool] = False
    """Whether a round has one query, never a batch."""

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

    def rows_outside(self, X: Tensor) -> Tensor:
        """Return a mask of the points `X` (`n x d`) that no query may be, whatever was evaluated: `n` booleans."""
        low, high = self.bounds
        slack = ROUNDING * (high - low)
        return ~((low - slack <= X) & (high + slack >= X)).all(dim=-1)

    def rounded(self, X: Tensor) -> Tensor:
        """Return the points `X` (`... x d`) with each input at the nearest value that it can take."""
        return X

    @abstractmethod
    def draw(self, n: int, history: History, generator: Generator) -> Tensor:
        """Return `n x d` random allowed points; fewer where fewer are left."""

    @abstractmethod
    def nearest(self, X: Tensor, history: History) -> Tensor:
        """Return allowed points near the rows of `X` (`n x d`), at most one for each row."""

    @abstractmethod
    def settle(self, history: History, generator: Generator) -> "Space":
        """Return the space of one round."""

    @abstractmethod
    def within(self, region: Tensor, history: History, least: int) -> Self:
        """Return the part inside `region` (`2 x d`), or the full space where fewer than `least` points are inside."""

    @abstractmethod
    def ends(self, acquisition: AcquisitionFunction, search: MultiStart) -> Tensor:
        """Return the end of each climb of an acquisition function in a settled space, `r x q x d`, the best first.

        Args:
            acquisition: function of batches.
            search: what is climbed from where.
        """

    def maximise(self, acquisition: AcquisitionFunction, search: MultiStart) -> Tensor:
        """Return the `q x d` maximiser of an acquisition function in a settled space."""
        return self.ends(acquisition, search)[0]

    @abstractmethod
    def without(self, X: Tensor) -> Self:
        """Return a settled space without the rows of `X` (`n x d`), if each is allowed only once."""


def checked_points(whose: str, X: object, space: Space) -> Tensor:
    """Return a copy of points, without a gradient, that are float64, finite and in the box around a space: `n x d`.

    Inputs that take steps are rounded: an acquisition function is maximised over the box around them.

    Args:
        whose: who returned them, for messages.
        X: what it returned.
        space: the space.

    Raises:
        PlumblineError: they are not; the message says what is there, and what is wanted.
    """
    wanted = f"n x {space.dim} points as a float64 tensor are wanted"
    if not isinstance(X, Tensor):
        raise PlumblineError(f"{whose} returned {kind_of(X)}: {wanted}")
    if X.ndim != 2 or X.shape[-1] != space.dim:
        raise PlumblineError(f"{whose} returned points of shape {' x '.join(map(str, X.shape)) or '()'}: {wanted}")
    if X.dtype != torch.float64:
        raise PlumblineError(f"{whose} returned points of type {str(X.dtype).removeprefix('torch.')}: {wanted}")
    # A copy: its owner may go on writing into its own tensor.
    X = X.detach().cpu().clone()
    low, high = space.bounds
    if bool(((low <= X) & (high >= X)).all()):  # a NaN is nowhere
        return space.rounded(X)
    odd = ~torch.isfinite(X)
    if odd.any():
        i, j = odd.nonzero()[0].tolist()
        raise PlumblineError(f"{whose} returned x = {X[i].tolist()}: input {j + 1} must be finite")
    outside = Space.rows_outside(space, X)
    if outside.any():
        x = X[int(outside.nonzero()[0])]
        j = int(torch.maximum(low - x, x - high).argmax())
        raise PlumblineError(
            f"{whose} returned x = {x.tolist()}: input {j + 1} must lie in its bounds, [{low[j]:g}, {high[j]:g}]"
        )
    return space.rounded(X.clamp(low, high))  # beyond a bound by rounding: problems refuse such points
