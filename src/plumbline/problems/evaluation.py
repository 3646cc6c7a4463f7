"""Values and observations of a problem at given points, with chance that comes in from outside."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from botorch.test_functions.base import BaseTestProblem, ConstrainedBaseTestProblem
from torch import Generator, Tensor
from torch.quasirandom import SobolEngine

from plumbline.core.errors import PlumblineError
from plumbline.core.reference_point import reference_point
from plumbline.problems.base import Problem
from plumbline.spaces.box import uniform


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


@dataclass(frozen=True)
class ProblemMetadata:
    """What is known of a problem besides its values; the same for every evaluation.

    Attributes:
        optimum: the greatest feasible value of a single objective, NaN where it is unknown.
        ref_point: what each of several objectives must exceed to count; None for one.
        roles: of the outcomes: `objective`, `at_least_zero` or `zero`; empty where they are unknown.
    """

    optimum: float = math.nan
    ref_point: tuple[float, ...] | None = None
    roles: tuple[str, ...] = ()


def metadata_of(problem: Problem) -> ProblemMetadata:
    """Return what is known of a problem."""
    point = reference_point(problem.outcomes)
    return ProblemMetadata(
        math.nan if problem.optimum is None else problem.optimum,
        None if point is None else tuple(point.tolist()),
        tuple(problem.roles),
    )


def optima_of(problem: Problem) -> Tensor:
    """Return where a problem is greatest: `n x d`, all places that are known.

    Raises:
        PlumblineError: none is known.
    """
    if problem.optimisers is None:
        raise PlumblineError("`diagnostics.widths` needs a problem whose optimum is known")
    return problem.optimisers


def holdout_of(problem: Problem, size: int, stream: Generator) -> tuple[Tensor, Tensor]:
    """Return points and observations that predictions are checked on besides the queries: `n x d` and `n x m`.

    They are `size` uniform ones, or those that the problem holds out itself.
    """
    X = uniform(problem.bounds, size, stream) if problem.holdout is None else problem.holdout
    return X, observe_holdout(problem, X, stream)


def notes_of(problem: Problem, X: Tensor, F: Tensor) -> dict[str, float]:
    """Return what a problem notes of the evaluations of a round, under names that no note of a method's has.

    Args:
        problem: the problem.
        X: `q x d`.
        F: `q x m` values without noise.
    """
    found = {} if problem.notes is None else problem.notes(X, F)
    return {f"problem.{name}": value for name, value in found.items()}


def observed(
    problem: Problem, name: str, X: Tensor, Y: Tensor, F: Tensor, asked: Tensor, first: int
) -> tuple[Tensor, Tensor]:
    """Return observations and values as they are logged: NaN for what was not asked for, or failed.

    Args:
        problem: which says whether its evaluations can fail.
        name: of the problem, for the message.
        X: `q x d`.
        Y: `q x m` observations.
        F: `q x m` values without noise.
        asked: `q x m` booleans.
        first: number of the first of the evaluations.

    Returns:
        Two `q x m`.

    Raises:
        PlumblineError: an outcome that is not finite although it may not fail, with its point and the remedy, or
            `asked` of another shape.
    """
    if asked.shape != Y.shape:
        raise PlumblineError(f"a proposal asks for outcomes {tuple(asked.shape)}; there are {tuple(Y.shape)}")
    failed = (~torch.isfinite(Y) & asked) | ~torch.isfinite(F)
    if failed.any() and not problem.may_fail:
        i = int(failed.any(dim=-1).nonzero()[0])
        raise PlumblineError(
            f"problem {name!r} returned {Y[i].tolist()} at evaluation {first + i}, "
            f"x = {X[i].tolist()}: an objective must be finite; penalise such points in the problem instead, "
            "or let it say that it `may_fail`"
        )
    if bool(asked.all()) and not failed.any():
        return Y, F
    return Y.where(asked & ~failed, torch.nan), F.where(torch.isfinite(F), torch.nan)
