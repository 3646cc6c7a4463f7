"""What a trial reads off its problem."""

import math
from dataclasses import dataclass

import torch
from botorch.test_functions.base import BaseTestProblem
from torch import Generator, Tensor

from plumbline.errors import PlumblineError
from plumbline.methods.base import Domain
from plumbline.problems.base import Observed, evaluate
from plumbline.problems.designs import uniform


@dataclass(frozen=True)
class Facts:
    """What is known of a problem besides its values; the same for every evaluation.

    Attributes:
        optimum: the greatest value of a problem of one outcome, NaN where it is unknown.
        ref_point: what each of several objectives must exceed to count; None for one.
        roles: of the outcomes: `objective`, `at_least_zero` or `zero`; empty where they are unknown.
    """

    optimum: float = math.nan
    ref_point: tuple[float, ...] | None = None
    roles: tuple[str, ...] = ()


def facts_of(problem: BaseTestProblem) -> Facts:
    """Return what is known of a problem."""
    ref_point = getattr(problem, "ref_point", None)
    return Facts(
        optimal_value(problem),
        None if ref_point is None else tuple(ref_point.tolist()),
        ("objective",) * getattr(problem, "num_objectives", 1),
    )


def domain_of(problem: BaseTestProblem) -> Domain:
    """Return what a method may know of a problem."""
    return Domain(
        problem.bounds,
        getattr(problem, "candidates", None),
        getattr(problem, "ref_point", None),
        getattr(problem, "shift", None),
        getattr(problem, "blocks", None),
    )


def optimal_value(problem: BaseTestProblem) -> float:
    """Return the greatest value of a single-outcome problem, NaN where it is unknown."""
    try:
        return float(problem.optimal_value)
    except (AttributeError, NotImplementedError):
        return math.nan


def optimum_of(problem: BaseTestProblem) -> Tensor:
    """Return where a problem is greatest: `1 x d`, the first of the places that are known.

    Raises:
        PlumblineError: none is known.
    """
    if getattr(problem, "optimizers", None) is None:
        raise PlumblineError("`diagnostics.widths` needs a problem whose optimum is known")
    return problem.optimizers[:1].to(problem.bounds)


def holdout_of(problem: BaseTestProblem, size: int, stream: Generator) -> tuple[Tensor, Tensor]:
    """Return points and observations that predictions are checked on besides the queries: `n x d` and `n x m`.

    They are `size` uniform ones, or those that the problem holds out itself.
    """
    X = getattr(problem, "holdout", None)
    if X is None:
        X = uniform(problem.bounds, size, stream)
    if isinstance(problem, Observed):
        return X, problem.observe(X, [stream] * len(X))
    F = problem(X, noise=False).reshape(len(X), -1)
    Y, _ = evaluate(problem, X, torch.randn(F.shape, generator=stream, dtype=F.dtype))
    return X, Y


def values_at(problem: BaseTestProblem, X: Tensor) -> Tensor:
    """Return the noise-free values of a problem of one outcome at `X` (`n x d`): `n`."""
    return problem(X, noise=False)


def refuse_non_finite(problem: BaseTestProblem, name: str, X: Tensor, Y: Tensor, asked: Tensor, first: int) -> None:
    """Raise where an outcome that was asked for is not a finite number.

    Args:
        problem: which may say that its evaluations can fail; none does yet.
        name: of the problem, for the message.
        X: `q x d`.
        Y: `q x m` observations.
        asked: `q x m` booleans.
        first: number of the first of the evaluations.

    Raises:
        PlumblineError: an observation that is not finite, with its point and the remedy.
    """
    bad = (~torch.isfinite(Y) & asked).any(dim=-1)
    if bad.any():
        i = int(bad.nonzero()[0])
        raise PlumblineError(
            f"problem {name!r} returned {Y[i].tolist()} at evaluation {first + i}, "
            f"x = {X[i].tolist()}: an objective must be finite; penalise such points in the problem instead"
        )
