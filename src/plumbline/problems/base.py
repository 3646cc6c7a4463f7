"""What every problem has in common: the registry, how one is built, and the noise of its observations."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import torch
from botorch.test_functions.base import BaseTestProblem
from pydantic import NonNegativeFloat, PositiveInt, model_validator
from torch import Generator, Tensor
from torch.quasirandom import SobolEngine

from plumbline.options import Options, parse
from plumbline.registry import Registry

problems = Registry("problem", "plumbline.problems")

ProblemT = TypeVar("ProblemT", bound=BaseTestProblem)


class ProblemOptions(Options):
    """Options of a problem whose dimension is fixed.

    Attributes:
        noise_std: standard deviation of the observation noise, in the units of the function.
        noise_scale: the same in units of the function's own standard deviation over its box (see `spread`); it takes
            the place of `noise_std`.
    """

    noise_std: NonNegativeFloat = 0.0
    noise_scale: NonNegativeFloat | None = None

    @model_validator(mode="after")
    def _one_noise(self) -> Self:
        # A default that is not 0 is no contradiction: `noise_scale` replaces it.
        if self.noise_scale is not None and self.noise_std > 0 and "noise_std" in self.model_fields_set:
            raise ValueError("noise_std and noise_scale are two ways to say one thing: give one of them")
        return self


class ScalableOptions(ProblemOptions):
    """Options of a problem that exists in every dimension."""

    dim: PositiveInt


@dataclass(frozen=True)
class Context:
    """What a problem may depend on besides its options: the folder of built features, and a seeded generator."""

    data: Path
    generator: Generator


def build_problem(name: str, options: dict[str, Any], context: Context) -> BaseTestProblem:
    """Return the problem called `name`.

    Raises:
        PlumblineError: unknown name, or options that are not the problem's.
    """
    entry = problems[name]
    return entry.build(parse(entry.options, options, f"problem {name!r}"), context)


def spread(problem: BaseTestProblem, n: int = 4096) -> Tensor:
    """Return the standard deviation of the noise-free function over its box, one an outcome: `m`.

    It is taken over the first `n` points of the unscrambled Sobol sequence, so that it is always the same number.
    """
    unit = SobolEngine(problem.dim).draw(n, dtype=problem.bounds.dtype)
    X = problem.bounds[0] + (problem.bounds[1] - problem.bounds[0]) * unit
    return problem(X, noise=False).reshape(n, -1).std(dim=0)


def with_noise(problem: ProblemT, options: ProblemOptions) -> ProblemT:
    """Return `problem`, its observations as noisy as `options` say."""
    if options.noise_scale is None:
        problem.noise_std = options.noise_std
    else:
        std = (options.noise_scale * spread(problem)).tolist()
        problem.noise_std = std[0] if len(std) == 1 else std
    return problem


def noise_std(problem: BaseTestProblem, X: Tensor) -> Tensor:
    """Return the standard deviation of the observation noise at `X`.

    Args:
        problem: its `noise_std` is None, a number, a list of one a outcome, or a function of `X` where the noise
            depends on the input.
        X: `n x d`, in the problem's bounds.

    Returns:
        A tensor that broadcasts to `n x m`.
    """
    std = problem.noise_std
    if callable(std):
        return std(X).reshape(len(X), -1)
    return torch.as_tensor(0.0 if std is None else std, dtype=X.dtype).reshape(1, -1)


def evaluate(problem: BaseTestProblem, X: Tensor, eps: Tensor) -> tuple[Tensor, Tensor]:
    """Return noisy and noise-free values at `X`, both to be maximised.

    Args:
        problem: the problem.
        X: `n x d`, in the problem's bounds.
        eps: `n x m` standard normal draws. They come in from outside so that methods are compared on equal noise.

    Returns:
        `Y` and `F`, both `n x m`.
    """
    F = problem(X, noise=False).reshape(len(X), -1)
    return F + noise_std(problem, X) * eps, F


@runtime_checkable
class Observed(Protocol):
    """A problem whose observations are not its values plus Gaussian noise."""

    def observe(self, X: Tensor, streams: Sequence[Generator]) -> Tensor:
        """Return an observation at each row of `X` (`n x d`), with the chance of its own stream: `n x m`."""
        ...


def observe(problem: BaseTestProblem, X: Tensor, streams: Sequence[Generator]) -> tuple[Tensor, Tensor]:
    """Return noisy and noise-free values at `X` (`n x d`), as `evaluate` does: `Y` and `F`, both `n x m`.

    Args:
        problem: the problem.
        X: in the problem's bounds.
        streams: one an evaluation, so that its chance is the same under any method.
    """
    own = problem.observe if isinstance(problem, Observed) else None
    if own is not None:
        return own(X, streams), problem(X, noise=False).reshape(len(X), -1)
    outcomes = getattr(problem, "num_objectives", 1)
    eps = torch.stack([torch.randn(outcomes, generator=stream, dtype=X.dtype) for stream in streams])
    return evaluate(problem, X, eps)
