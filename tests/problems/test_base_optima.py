"""Known optima, of all registered problems and of all tasks: regret is zero at the maximisers, and nowhere below."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from botorch.test_functions.base import ConstrainedBaseTestProblem
from problem_options import acceptable
from scipy.optimize import minimize
from torch import Tensor

from plumbline.core.errors import PlumblineError
from plumbline.problems.base import Context, Problem, problems
from plumbline.problems.build import build_problem
from plumbline.problems.evaluation import values
from plumbline.registry.references import canonical_json
from plumbline.spaces.box import Box, uniform
from plumbline.study.methods_and_tasks import load_methods_and_tasks

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-9

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "hartmann": [{"dim": 3}, {"dim": 6}],
    "hartmann3-shift": [{}, {"shift": 0.0}, {"shift": 0.4}],
    "rosenbrock": [{"dim": 2}, {"dim": 7}, {"dim": 3, "interval": [-2.048, 2.048]}, {"dim": 3, "interval": [0.9, 1.1]}],
    "rkhs": [{"dim": 1}, {"dim": 2, "kernel": "matern52", "basis": 40}],
}
"""Options of problems that take others than a dimension, or are slow in many."""


NOISE = {"noise_std", "noise_scale", "noise_factor"}
"""Options that change no value."""


def cases() -> dict[str, tuple[str, dict[str, Any]]]:
    """All registered problems, in several dimensions, and the problems of all tasks, each once."""
    wanted = [
        (name, options)
        for name in problems.entries()
        for options in OPTIONS.get(name, [{}, *({"dim": dim} for dim in (1, 2, 20))])
        if acceptable(name, options)
    ]
    tasks = [task.problem for task in load_methods_and_tasks(ROOT / "config").tasks.values()]
    wanted += [(one.name, dict(one.options)) for one in tasks if one.name != "rkhs"]
    bare = [(name, {key: value for key, value in options.items() if key not in NOISE}) for name, options in wanted]
    return {f"{name}-{canonical_json(options)}": (name, options) for name, options in bare}


CASES = cases()


@cache
def built(case: str) -> Problem | None:
    """The problem of a case, or None where its data are not there."""
    name, options = CASES[case]
    try:
        return build_problem(name, options, Context(Path("/none"), torch.Generator().manual_seed(0)))
    except PlumblineError:
        return None


def has_known_optimum(case: str) -> bool:
    """Whether a case has an optimum in its box that is known, with its maximisers."""
    problem = built(case)
    known = problem is not None and None not in (problem.optimum, problem.optimisers)
    return known and isinstance(problem.space, Box)


KNOWN = [case for case in CASES if has_known_optimum(case)]


def test_the_problems_with_a_known_optimum_are_these() -> None:
    assert {CASES[case][0] for case in KNOWN} == {
        *("ackley", "ackley-noisy", "alpine", "branin", "constrained-branin", "constrained-gramacy", "double-knot"),
        *("double-knot-code", "forrester", "hartmann", "hartmann3-shift", "levy", "rippled", "rkhs", "rosenbrock"),
        *("sinc", "sinc-code", "six-hump-camel", "styblinski-tang"),
    }


def known(case: str) -> Problem:
    """The problem of a case with a known optimum."""
    problem = built(case)
    assert problem is not None
    return problem


def regrets(problem: Problem, X: Tensor) -> Tensor:
    """The regrets of those of `n x d` points where all constraints hold."""
    F = values(problem, X)
    roles = np.array(problem.roles)
    feasible = (F[:, roles == "at_least_zero"] >= 0).all(1) & (F[:, roles == "zero"].abs() <= TOLERANCE).all(1)
    assert problem.optimum is not None
    return problem.optimum - F[feasible][:, roles == "objective"].squeeze(1)


@pytest.mark.parametrize("case", KNOWN)
def test_the_regret_of_a_maximiser_is_zero(case: str) -> None:
    problem = known(case)
    assert problem.optimisers is not None
    found = regrets(problem, problem.optimisers)
    assert len(found) == len(problem.optimisers), "each is feasible"
    assert (found >= 0).all()
    assert (found <= TOLERANCE).all()


@pytest.mark.parametrize("case", KNOWN)
def test_no_point_beside_a_maximiser_has_a_negative_regret(case: str) -> None:
    """Values close to the greatest differ by rounding alone, which must not carry one of them beyond it."""
    problem = known(case)
    low, high = problem.bounds
    generator = torch.Generator().manual_seed(1)
    assert problem.optimisers is not None
    for scale in (1e-12, 1e-9, 1e-7):
        steps = torch.randn(300, len(problem.optimisers), problem.space.dim, generator=generator, dtype=low.dtype)
        X = (problem.optimisers + scale * (high - low) * steps).clamp(low, high).flatten(0, 1)
        assert (regrets(problem, X) >= (0 if len(problem.roles) == 1 else -TOLERANCE)).all()


def outcomes_of(problem: Problem, X: Tensor) -> Tensor:
    """The noise-free outcomes at one point (`1 x d`) with their gradients, which `values` takes away: `m`."""
    objectives = problem.function(X, noise=False).flatten()
    if not isinstance(problem.function, ConstrainedBaseTestProblem):
        return objectives
    return torch.cat([objectives, problem.function.evaluate_slack_true(X).flatten()])


def climb(problem: Problem, start: Tensor) -> Tensor:
    """All points that a local search evaluates, which minimises the regret under the problem's constraints: `n x d`."""
    seen: list[Tensor] = []
    roles = problem.roles

    def outcome(column: int) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        def evaluated(x: np.ndarray) -> tuple[float, np.ndarray]:
            seen.append(torch.from_numpy(x.copy()))
            X = torch.from_numpy(x.copy()).unsqueeze(0).requires_grad_()
            value = outcomes_of(problem, X)[column]
            (slope,) = torch.autograd.grad(value, X)
            return value.item(), slope[0].numpy()

        return evaluated

    def negated(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = outcome(roles.index("objective"))(x)
        return -value, -slope

    constraints = [
        {
            "type": "ineq" if role == "at_least_zero" else "eq",
            "fun": lambda x, i=i: outcome(i)(x)[0],
            "jac": lambda x, i=i: outcome(i)(x)[1],
        }
        for i, role in enumerate(roles)
        if role != "objective"
    ]
    bounds = problem.bounds.T.tolist()
    method, options = (
        ("SLSQP", {"ftol": 1e-15, "maxiter": 60})
        if constraints
        else ("L-BFGS-B", {"ftol": 1e-16, "gtol": 1e-12, "maxfun": 150})
    )
    minimize(negated, start, jac=True, method=method, bounds=bounds, constraints=constraints, options=options)
    low, high = problem.bounds
    return torch.stack(seen).clamp(low, high)


@pytest.mark.parametrize("case", KNOWN)
def test_no_local_search_ends_beyond_the_optimum(case: str) -> None:
    problem = known(case)
    low, high = problem.bounds
    generator = torch.Generator().manual_seed(2)
    assert problem.optimisers is not None
    points = uniform(problem.bounds, 64, generator)
    best = points[values(problem, points)[:, 0].argsort(descending=True)[:2]]
    near = problem.optimisers[:2] + 0.02 * (high - low) * torch.randn(
        min(2, len(problem.optimisers)), len(low), generator=generator, dtype=low.dtype
    )
    for start in torch.cat([best, near.clamp(low, high)]):
        assert (regrets(problem, climb(problem, start)) >= -TOLERANCE).all()


def test_most_problems_are_among_them() -> None:
    counted = [case for case in CASES if (found := built(case)) is not None and found.optimum is not None]
    assert len(counted) >= 40


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [
        {"dim": 1, "kernel": "matern52", "basis": 16},
        {"dim": 2, "kernel": "matern52", "basis": 64, "lengthscale": 0.2},
        {"dim": 3, "basis": 30},
    ],
    ids=str,
)
def test_no_local_search_on_a_random_function_ends_beyond_its_optimum(options: dict[str, Any], seed: int) -> None:
    context = Context(data=Path("/none"), generator=torch.Generator().manual_seed(seed))
    problem = build_problem("rkhs", options, context)
    basis = problem.function.basis  # all maxima are near these points
    for start in basis[values(problem, basis)[:, 0].argsort(descending=True)[:6]]:
        assert (regrets(problem, climb(problem, start)) >= -TOLERANCE).all()
