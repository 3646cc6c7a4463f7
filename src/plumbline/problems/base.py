"""What every problem has in common: what it is made of, what it may depend on, and the registry."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import torch
from botorch.test_functions.base import BaseTestProblem
from torch import Generator, Tensor

from plumbline.registry import Registry
from plumbline.spaces.base import Space

problems = Registry("problem", "plumbline.problems")

Role = Literal["objective", "at_least_zero", "zero"]
"""What an outcome is for: to be maximised, to be at least zero, or to be zero."""

Noise = float | Callable[[Tensor], Tensor]
"""Standard deviation of Gaussian noise, the same everywhere or a function of `n x d` points: `n`."""

Observer = Callable[[Tensor, Sequence[Generator]], Tensor]
"""Observations at `n x d` points, each with the chance of its own stream: `n x m`."""


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


@dataclass(frozen=True)
class Problem:
    """What is optimised.

    Attributes:
        function: a test problem of BoTorch's, whose noise-free values are to be maximised; constraints are its slack.
        space: where it may be asked.
        outcomes: what an evaluation returns, objectives first.
        observe: how observations come about where they are not values plus Gaussian noise; None where they are.
        optimum: the greatest feasible value of a single objective; None where it is unknown.
        optimisers: `k x d`, where it is attained; None where that is unknown.
        shift: where training inputs and queries come from, for problems that are about that.
        holdout: `n x d` points kept aside to check predictions on; None for fresh ones.
        may_fail: whether a value that is not finite is an observation: that the evaluation failed.
    """

    function: BaseTestProblem
    space: Space
    outcomes: tuple[Outcome, ...]
    observe: Observer | None = None
    optimum: float | None = None
    optimisers: Tensor | None = None
    shift: CovariateShift | None = None
    holdout: Tensor | None = None
    may_fail: bool = False

    @property
    def bounds(self) -> Tensor:
        """The box around the space, `2 x d`."""
        return self.space.bounds

    @property
    def roles(self) -> list[Role]:
        """The role of each outcome."""
        return [outcome.role for outcome in self.outcomes]


def reference_point(outcomes: Sequence[Outcome]) -> Tensor | None:
    """Return what the objectives must exceed to count in the hypervolume, `m`; None for a single one."""
    references = [outcome.reference for outcome in outcomes if outcome.role == "objective"]
    known = [reference for reference in references if reference is not None]
    return torch.tensor(known, dtype=torch.float64) if len(known) == len(references) else None


@dataclass(frozen=True)
class Context:
    """What a problem may depend on besides its options: the folder of built inputs, and a seeded generator."""

    data: Path
    generator: Generator
