"""Outcomes of an evaluation and the covariate shift of its points: what problems and methods share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Generator, Tensor

Role = Literal["objective", "at_least_zero", "zero"]
"""Role of an outcome: an objective to be maximised, an inequality constraint, or an equality constraint."""

Noise = float | Callable[[Tensor], Tensor]
"""Standard deviation of Gaussian noise, the same everywhere or a function of `n x d` points: `n`."""


class CovariateShift(Protocol):
    """Known densities `p` of the data and `p'` of the queries."""

    def source(self, n: int, generator: Generator) -> Tensor:
        """Return `n x d` draws of `p`."""
        ...

    def target(self, n: int, generator: Generator) -> Tensor:
        """Return `n x d` draws of `p'`."""
        ...

    def log_ratio(self, X: Tensor) -> Tensor:
        """Return `log p'(x) / p(x)` at `... x d`: `...`."""
        ...


@dataclass(frozen=True)
class Outcome:
    """One of the numbers that an evaluation returns.

    Attributes:
        name: its name in messages.
        role: objectives are maximised; constraints are at least zero, or zero, where they hold.
        noise: standard deviation of its observation noise.
        reference: coordinate of the reference point of the hypervolume; None for a single objective.
    """

    name: str
    role: Role = "objective"
    noise: Noise = 0.0
    reference: float | None = None
