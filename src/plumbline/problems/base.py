"""The definition of a problem, the context it is built in, and the registry of problems."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from botorch.test_functions.base import BaseTestProblem
from torch import Generator, Tensor

from plumbline.core.outcomes import CovariateShift, Outcome, Role
from plumbline.registry.registry import Registry
from plumbline.spaces.base import Space

problems = Registry("problem", "plumbline.problems")

T = TypeVar("T")

Observation = Callable[[Tensor, Sequence[Generator]], Tensor]
"""Observations at `n x d` points, each with randomness from its own stream: `n x m`."""

Notes = Callable[[Tensor, Tensor], dict[str, float]]
"""Numbers that the log records for a round, as a function of points `q x d` and noise-free values `q x m` alone: a
resumed trial notes the same."""


@dataclass(frozen=True)
class EvaluationContext:
    """The context of evaluations. It does not change their results, except for the rounding of another device.

    Attributes:
        device: device for the computations.
        unfinished: a file for the problem's own use until its trial is over; after a kill it holds the saved progress.
    """

    device: torch.device
    unfinished: Path


@dataclass(frozen=True)
class Problem:
    """A problem of optimisation.

    Attributes:
        function: a BoTorch test problem, whose noise-free values are to be maximised; constraints are its slack.
        space: the search space.
        outcomes: outcomes of an evaluation, objectives first.
        observe: sampler of observations that are not values plus Gaussian noise; None where they are.
        optimum: the greatest feasible value of a single objective; None where it is unknown.
        optimisers: `k x d`, the maximisers; None where they are unknown.
        shift: distributions of training inputs and queries, for problems with covariate shift.
        holdout: `n x d` held-out points for checks of predictions; None for fresh ones.
        examples: draws n different points that are known before any evaluation, `n x d`; None where there are none.
        may_fail: whether a value that is not finite means a failed evaluation instead of an error.
        notes: notes of the evaluations of a round; None for none.
        shared_chance: whether the i-th evaluation has the same randomness in all trials, whatever their seeds.
        prepare: called with the context before the first evaluation of a trial; None for fast problems.
        name: its registered name, for messages; empty for a problem that was built otherwise.
    """

    function: BaseTestProblem
    space: Space
    outcomes: tuple[Outcome, ...]
    observe: Observation | None = None
    optimum: float | None = None
    optimisers: Tensor | None = None
    shift: CovariateShift | None = None
    holdout: Tensor | None = None
    examples: Callable[[int, Generator], Tensor] | None = None
    may_fail: bool = False
    notes: Notes | None = None
    shared_chance: bool = False
    prepare: Callable[[EvaluationContext], None] | None = None
    name: str = ""

    @property
    def called(self) -> str:
        """The problem in messages."""
        return f"problem {self.name!r}" if self.name else "the problem"

    @property
    def bounds(self) -> Tensor:
        """The box around the space, `2 x d`."""
        return self.space.bounds

    @property
    def noise_free(self) -> bool:
        """Whether observations are values without noise."""
        return self.observe is None and all(outcome.noise == 0.0 for outcome in self.outcomes)

    @property
    def roles(self) -> list[Role]:
        """The role of each outcome."""
        return [outcome.role for outcome in self.outcomes]


class SharedCache:
    """A cache shared by the problems of one job. Its entries must not depend on a seed or the order of trials."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def take(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the entry of a key; the first call makes it."""
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made


@dataclass(frozen=True)
class Context:
    """Inputs of a problem besides its options.

    Attributes:
        data: the folder of built inputs.
        generator: generator seeded by the trial.
        shared: shared cache of the trial's job.
    """

    data: Path
    generator: Generator
    shared: SharedCache = field(default_factory=SharedCache)
