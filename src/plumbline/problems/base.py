"""What every problem has in common: the registry, how one is built, and the noise of its observations."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from botorch.test_functions.base import BaseTestProblem
from pydantic import NonNegativeFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.options import Options, parse
from plumbline.registry import Registry

problems = Registry("problem", "plumbline.problems")


class ProblemOptions(Options):
    """Options of a problem whose dimension is fixed."""

    noise_std: NonNegativeFloat = 0.0


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
