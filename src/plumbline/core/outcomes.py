"""What an evaluation returns, and where its points may come from: what problems and methods both know of each other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Generator, Tensor

Role = Literal["objective", "at_least_zero", "zero"]
"""What an outcome is for: to be maximised, to be at least zero, or to be zero."""

Noise = float | Callable[[Tensor], Tensor]
"""Standard deviation of Gaussian noise, the same everywhere or a function of `n x d` points: `n`."""


class CovariateShift(Protocol):
    """Known densities of data, `p`, and of queries, `p'`."""

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
    """One number that an evaluation returns.

    Attributes:
        name: what messages call it.
        role: objectives are maximised; constraints are at least zero, or zero, where they hold.
        noise: standard deviation of what is added to it in an observation.
        reference: what an objective must exceed to count in the hypervolume; None for a single objective.
    """

    name: str
    role: Role = "objective"
    noise: Noise = 0.0
    reference: float | None = None
