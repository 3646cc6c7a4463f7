"""Values and observations of a problem at given points, with chance that comes in from outside."""

from collections.abc import Sequence

import torch
from botorch.test_functions.base import BaseTestProblem, ConstrainedBaseTestProblem
from torch import Generator, Tensor
from torch.quasirandom import SobolEngine

from plumbline.problems.base import Problem


def values(problem: Problem, X: Tensor) -> Tensor:
    """Return the noise-free outcomes at `X` (`n x d`, in the problem's bounds), objectives first: `n x m`."""
    objectives = problem.function(X, noise=False).reshape(len(X), -1)
    if isinstance(problem.function, ConstrainedBaseTestProblem):
        return torch.cat([objectives, problem.function.evaluate_slack_true(X).reshape(len(X), -1)], dim=-1)
    return objectives


def noise_std(problem: Problem, X: Tensor) -> Tensor:
    """Return the standard deviation of the noise of each outcome at `X` (`n x d`): `n x m`."""
    columns = [
        outcome.noise(X).reshape(len(X)) if callable(outcome.noise) else X.new_full((len(X),), outcome.noise)
        for outcome in problem.outcomes
    ]
    return torch.stack(columns, dim=-1)


def evaluate(problem: Problem, X: Tensor, eps: Tensor) -> tuple[Tensor, Tensor]:
    """Return noisy and noise-free values at `X`, both to be maximised.

    Args:
        problem: the problem.
        X: `n x d`, in the problem's bounds.
        eps: `n x m` standard normal draws. They come in from outside so that methods are compared on equal noise.

    Returns:
        `Y` and `F`, both `n x m`.
    """
    F = values(problem, X)
    return F + noise_std(problem, X) * eps, F


def observe(problem: Problem, X: Tensor, streams: Sequence[Generator]) -> tuple[Tensor, Tensor]:
    """Return noisy and noise-free values at `X` (`n x d`), as `evaluate` does: `Y` and `F`, both `n x m`.

    Args:
        problem: the problem.
        X: in the problem's bounds.
        streams: one an evaluation, so that its chance is the same under any method.
    """
    if problem.observe is not None:
        return problem.observe(X, streams), values(problem, X)
    eps = torch.stack([torch.randn(len(problem.outcomes), generator=stream, dtype=X.dtype) for stream in streams])
    return evaluate(problem, X, eps)


def observe_holdout(problem: Problem, X: Tensor, stream: Generator) -> Tensor:
    """Return observations at `X` (`n x d`) whose chance is that of one stream: `n x m`."""
    if problem.observe is not None:
        return problem.observe(X, [stream] * len(X))
    eps = torch.randn(len(X), len(problem.outcomes), generator=stream, dtype=X.dtype)
    return evaluate(problem, X, eps)[0]


def spread(function: BaseTestProblem, n: int = 4096) -> Tensor:
    """Return the standard deviation of a noise-free function over its box, one an objective: `m`.

    It is taken over the first `n` points of the unscrambled Sobol sequence, so that it is always the same number.
    """
    unit = SobolEngine(function.dim).draw(n, dtype=function.bounds.dtype)
    X = function.bounds[0] + (function.bounds[1] - function.bounds[0]) * unit
    return function(X, noise=False).reshape(n, -1).std(dim=0)
