"""What a problem declares about itself, refused by name where it cannot be so."""

import math
from numbers import Real
from typing import get_args

import torch
from torch import Tensor

from plumbline.core.errors import PlumblineError, kind_of
from plumbline.core.outcomes import Outcome, Role
from plumbline.problems.base import Problem
from plumbline.spaces.base import Space


def refuse_odd_declarations(problem: Problem) -> None:
    """Raise PlumblineError, naming the field, where a problem declares what cannot be so."""
    if not isinstance(problem.space, Space):
        raise PlumblineError(f"{problem.called}: its space is {kind_of(problem.space)}: a Space is wanted")
    refuse_odd_bounds(problem)
    _refuse_odd_outcomes(problem)
    _refuse_odd_optimum(problem)
    for name, points in (("optimisers", problem.optimisers), ("holdout points", problem.holdout)):
        if points is not None:
            _refuse_odd_points(problem, name, points)


def refuse_odd_bounds(problem: Problem) -> None:
    """Raise PlumblineError unless bounds are `2 x d`, float64 and finite, and the lower one of each input is lower."""
    bounds = problem.bounds
    if bounds.ndim != 2 or len(bounds) != 2 or bounds.dtype != torch.float64:
        raise PlumblineError(f"{problem.called}: its bounds are {_kind(bounds)}: 2 x d and float64 are wanted")
    for i, (low, high) in enumerate(bounds.T.tolist(), start=1):
        wrong = (
            "must be finite"
            if not math.isfinite(low) or not math.isfinite(high)
            else "are equal: leave out an input that cannot change"
            if low == high
            else "the lower one must be lower"
            if low > high
            else "are too far apart for a float64"
            if not math.isfinite(high - low)
            else ""
        )
        if wrong:
            raise PlumblineError(f"{problem.called}: bounds of input {i}: [{low:g}, {high:g}] {wrong}")


def _kind(tensor: Tensor) -> str:
    return f"{' x '.join(map(str, tensor.shape))} and {str(tensor.dtype).removeprefix('torch.')}"


def _is_finite(number: object) -> bool:
    return isinstance(number, Real) and not isinstance(number, bool) and math.isfinite(number)


def _refuse_odd_outcomes(problem: Problem) -> None:
    for outcome in problem.outcomes:
        if not isinstance(outcome, Outcome):
            raise PlumblineError(f"{problem.called} declares the outcome {outcome!r}: an Outcome is wanted")
        called = f"{problem.called}: outcome {outcome.name!r}"
        if outcome.role not in get_args(Role):
            raise PlumblineError(f"{called} has the role {outcome.role!r}: {', '.join(get_args(Role))} are known")
        noise, reference = outcome.noise, outcome.reference
        if not callable(noise) and not (_is_finite(noise) and noise >= 0):
            raise PlumblineError(f"{called} has noise of {noise!r}: a standard deviation, or a function, is wanted")
        if reference is not None and not _is_finite(reference):
            raise PlumblineError(f"{called} has the reference {reference!r}: a finite number, or None, is wanted")
    objectives = [role == "objective" for role in problem.roles]
    if not any(objectives) or objectives != sorted(objectives, reverse=True):
        raise PlumblineError(
            f"{problem.called} declares the outcomes {', '.join(problem.roles) or '(none)'}: one objective at least is "
            "wanted, and objectives come before constraints"
        )


def _refuse_odd_optimum(problem: Problem) -> None:
    if problem.optimum is None:
        return
    if not _is_finite(problem.optimum):
        raise PlumblineError(
            f"{problem.called}: its optimum is {problem.optimum!r}: a finite number is wanted, or None if it is unknown"
        )
    if problem.roles.count("objective") > 1:
        raise PlumblineError(f"{problem.called} has an optimum and several objectives: leave the optimum out")


def _refuse_odd_points(problem: Problem, name: str, points: object) -> None:
    dim = problem.space.dim
    wanted = f"n x {dim} points as a float64 tensor are wanted"
    if not isinstance(points, Tensor):
        raise PlumblineError(f"{problem.called}: its {name} are {kind_of(points)}: {wanted}")
    if points.ndim != 2 or points.shape[-1] != dim or points.dtype != torch.float64:
        raise PlumblineError(f"{problem.called}: its {name} are {_kind(points)}: {wanted}")
