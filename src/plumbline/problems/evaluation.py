"""Values and observations of a problem at given points, with randomness passed in by the caller."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from botorch.test_functions.base import BaseTestProblem, ConstrainedBaseTestProblem
from torch import Generator, Tensor
from torch.quasirandom import SobolEngine

from plumbline.core.errors import PlumblineError, kind_of
from plumbline.core.named_numbers import refuse_odd_numbers
from plumbline.core.outcomes import Outcome
from plumbline.core.reference_point import reference_point
from plumbline.problems.base import Problem
from plumbline.spaces.box import uniform

BEYOND = 1e-4
"""How far a value may exceed the optimum, in units of the optimum or of 1; BoTorch has some optima to five digits."""


def values(problem: Problem, X: Tensor) -> Tensor:
    """Return the noise-free outcomes at `X` (`n x d`, in the problem's bounds), objectives first: `n x m`."""
    slack, m = 0, len(problem.outcomes)
    if isinstance(problem.function, ConstrainedBaseTestProblem):
        slack = problem.function.num_constraints
    objectives = checked(problem.function(X, noise=False), problem, (len(X), m - slack))
    if not slack:
        return objectives
    return torch.cat([objectives, checked(problem.function.evaluate_slack_true(X), problem, (len(X), slack))], dim=-1)


def checked(outcomes: object, problem: Problem, shape: tuple[int, int], what: str = "") -> Tensor:
    """Return outcomes of an evaluation as a float64 tensor without a gradient, `n x m`.

    Args:
        outcomes: what the problem returned; of a single outcome perhaps `n`.
        problem: the problem.
        shape: `n` and `m`.
        what: what it returned, for messages, if not its values.

    Raises:
        PlumblineError: the message says what the problem returned, and what is wanted.
    """
    returned = f"{problem.called} returned" + (f" {what} as" if what else "")
    wanted = f"{shape[0]} x {shape[1]} in float64 is wanted"
    if not isinstance(outcomes, Tensor):
        raise PlumblineError(f"{returned} {kind_of(outcomes)}: a tensor of {wanted}")
    if outcomes.shape != shape and (shape[1] != 1 or outcomes.shape != shape[:1]):
        found = " x ".join(map(str, outcomes.shape)) or "a single number"
        raise PlumblineError(f"{returned} {found}: {wanted}" + ("" if what else ", a column for each declared outcome"))
    if outcomes.dtype != torch.float64:
        raise PlumblineError(f"{returned} {str(outcomes.dtype).removeprefix('torch.')}: {wanted}")
    return outcomes.detach().reshape(shape).clone()  # its owner may go on writing into its own tensor


def noise_std(problem: Problem, X: Tensor) -> Tensor:
    """Return the standard deviation of the noise of each outcome at `X` (`n x d`): `n x m`.

    Raises:
        PlumblineError: a problem's own function returned something else.
    """
    return torch.cat([_noise_std_of(problem, outcome, X) for outcome in problem.outcomes], dim=-1)


def _noise_std_of(problem: Problem, outcome: Outcome, X: Tensor) -> Tensor:
    """Return the standard deviation of one outcome's noise: `n x 1`."""
    if not callable(outcome.noise):
        return X.new_full((len(X), 1), outcome.noise)
    std = checked(outcome.noise(X), problem, (len(X), 1), f"the noise of {outcome.name!r}")
    if (std < 0).any():
        raise PlumblineError(f"{problem.called} returned {float(std.min()):g} as the noise of {outcome.name!r}")
    return std


def evaluate(problem: Problem, X: Tensor, eps: Tensor) -> tuple[Tensor, Tensor]:
    """Return noisy and noise-free values at `X`, both to be maximised.

    Args:
        problem: the problem.
        X: `n x d`, in the problem's bounds.
        eps: `n x m` standard normal draws, passed in so that methods are compared on equal noise.

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
        streams: a stream per evaluation, so that its randomness is the same under any method.
    """
    if problem.observe is not None:
        return _observed_by_itself(problem, X, streams), values(problem, X)
    eps = torch.stack([torch.randn(len(problem.outcomes), generator=stream, dtype=X.dtype) for stream in streams])
    return evaluate(problem, X, eps)


def observe_holdout(problem: Problem, X: Tensor, stream: Generator) -> Tensor:
    """Return observations at `X` (`n x d`) with randomness from one stream: `n x m`."""
    if problem.observe is not None:
        return _observed_by_itself(problem, X, [stream] * len(X))
    eps = torch.randn(len(X), len(problem.outcomes), generator=stream, dtype=X.dtype)
    return evaluate(problem, X, eps)[0]


def _observed_by_itself(problem: Problem, X: Tensor, streams: Sequence[Generator]) -> Tensor:
    """Return the observations of a problem that are not values plus Gaussian noise: `n x m`."""
    assert problem.observe is not None
    return checked(problem.observe(X, streams), problem, (len(X), len(problem.outcomes)))


def spread(function: BaseTestProblem, n: int = 4096) -> Tensor:
    """Return the standard deviation of each objective of a noise-free function over its box: `m`.

    The points are the first `n` of the unscrambled Sobol sequence, so the result is always the same.
    """
    unit = SobolEngine(function.dim).draw(n, dtype=function.bounds.dtype)
    X = function.bounds[0] + (function.bounds[1] - function.bounds[0]) * unit
    return function(X, noise=False).reshape(n, -1).std(dim=0)


@dataclass(frozen=True)
class ProblemMetadata:
    """Known facts about a problem, the same for every evaluation.

    Attributes:
        optimum: the greatest feasible value of a single objective, NaN where it is unknown.
        ref_point: reference point of the hypervolume; None for a single objective.
        roles: roles of the outcomes: `objective`, `at_least_zero` or `zero`; empty where they are unknown.
    """

    optimum: float = math.nan
    ref_point: tuple[float, ...] | None = None
    roles: tuple[str, ...] = ()


def metadata_of(problem: Problem) -> ProblemMetadata:
    """Return the metadata of a problem."""
    point = reference_point(problem.outcomes)
    return ProblemMetadata(
        math.nan if problem.optimum is None else problem.optimum,
        None if point is None else tuple(point.tolist()),
        tuple(problem.roles),
    )


def optima_of(problem: Problem) -> Tensor:
    """Return all known maximisers of a problem: `n x d`.

    Raises:
        PlumblineError: none is known.
    """
    if problem.optimisers is None:
        raise PlumblineError("`diagnostics.widths` needs a problem whose optimum is known")
    return problem.optimisers


def holdout_of(problem: Problem, size: int, stream: Generator) -> tuple[Tensor, Tensor]:
    """Return held-out points and observations for checks of predictions: `n x d` and `n x m`.

    They are `size` uniform points, or the problem's own holdout.
    """
    X = uniform(problem.bounds, size, stream) if problem.holdout is None else problem.holdout
    return X, observe_holdout(problem, X, stream)


def notes_of(problem: Problem, X: Tensor, F: Tensor) -> dict[str, float]:
    """Return a problem's notes on the evaluations of a round, under names that no note of a method has.

    Args:
        problem: the problem.
        X: `q x d`.
        F: `q x m` values without noise.

    Raises:
        PlumblineError: the notes are not finite numbers by name.
    """
    notes = {} if problem.notes is None else problem.notes(X, F)
    refuse_odd_numbers(problem.called, "notes", notes)
    return {f"problem.{name}": value for name, value in notes.items()}


def observed(
    problem: Problem, name: str, X: Tensor, Y: Tensor, F: Tensor, requested: Tensor, first: int
) -> tuple[Tensor, Tensor]:
    """Return observations and values as the log records them: NaN for outcomes that were not requested or failed.

    Args:
        problem: the problem, whose evaluations may fail.
        name: name of the problem, for messages.
        X: `q x d`.
        Y: `q x m` observations.
        F: `q x m` values without noise.
        requested: `q x m` booleans, the outcomes of the ask requests.
        first: index of the first evaluation.

    Returns:
        Two `q x m`.

    Raises:
        PlumblineError: an outcome is not finite although evaluations cannot fail, or a feasible value exceeds the
            optimum; the message gives point and remedy.
    """
    failed = (~torch.isfinite(Y) & requested) | ~torch.isfinite(F)
    if failed.any() and not problem.may_fail:
        i = int(failed.any(dim=-1).nonzero()[0])
        raise PlumblineError(
            f"problem {name!r} returned {Y[i].tolist()} at evaluation {first + i}, "
            f"x = {X[i].tolist()}: an objective must be finite; penalise such points in the problem instead, "
            "or set its `may_fail`"
        )
    beyond = beyond_optimum(problem, F)
    if beyond.any():
        i = int(beyond.nonzero()[0])
        raise PlumblineError(
            f"problem {name!r} has the value {F[i, 0]:.6g} at evaluation {first + i}, x = {X[i].tolist()}, which "
            f"exceeds its optimum {problem.optimum:.6g}: correct the optimum, or declare none; values are maximised, "
            "so that a BoTorch function that is to be minimised needs `negate=True`"
        )
    if bool(requested.all()) and not failed.any():
        return Y, F
    return Y.where(requested & ~failed, torch.nan), F.where(torch.isfinite(F), torch.nan)


def beyond_optimum(problem: Problem, F: Tensor) -> Tensor:
    """Return which values without noise (`q x m`) are feasible and exceed the declared optimum: `q` booleans."""
    if problem.optimum is None:
        return torch.zeros(len(F), dtype=torch.bool)
    roles = problem.roles
    holds = [F[:, j] >= 0 if role == "at_least_zero" else F[:, j] == 0 for j, role in enumerate(roles) if j > 0]
    exceeds = F[:, 0] > problem.optimum + BEYOND * max(1.0, abs(problem.optimum))
    return torch.stack([exceeds, torch.isfinite(F[:, 0]), *holds]).all(dim=0)
