"""What every problem has in common: what it is made of, what it may depend on, and the registry."""

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
"""Observations at `n x d` points, each with the chance of its own stream: `n x m`."""

Notes = Callable[[Tensor, Tensor], dict[str, float]]
"""Numbers worth a column of a log, of the evaluations of a round: points `q x d` and noise-free values `q x m`. They
follow from these alone: a trial that was killed notes the same."""


@dataclass(frozen=True)
class EvaluationContext:
    """Where evaluations are made; none of it changes what comes of them, but for the rounding of another device.

    Attributes:
        device: where they may be computed.
        unfinished: a file that is the problem's until its trial is over: what is there, it left when it was killed.
    """

    device: torch.device
    unfinished: Path


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
        examples: draws n different points that are known before any evaluation, `n x d`; None where there are none.
        may_fail: whether a value that is not finite is an observation: that the evaluation failed.
        notes: what is noted of the evaluations of a round; None for nothing.
        shared_chance: whether the i-th evaluation has the same chance in all trials, whatever their seeds.
        prepare: is told, before the first evaluation of a trial, where they are made; None where they take no time.
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

    @property
    def bounds(self) -> Tensor:
        """The box around the space, `2 x d`."""
        return self.space.bounds

    @property
    def roles(self) -> list[Role]:
        """The role of each outcome."""
        return [outcome.role for outcome in self.outcomes]


class SharedCache:
    """What the problems of one job have in common, made once: no seed and no order of trials may show in it."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def take(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made under a key; the first to ask makes it."""
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made


@dataclass(frozen=True)
class Context:
    """What a problem may depend on besides its options.

    Attributes:
        data: the folder of built inputs.
        generator: seeded by the trial.
        shelf: of the job that the trial is part of.
    """

    data: Path
    generator: Generator
    shelf: SharedCache = field(default_factory=SharedCache)
