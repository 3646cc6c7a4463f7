"""Problems built from a name and options, or from any BoTorch test problem."""

from dataclasses import replace
from typing import Any

from botorch.test_functions.base import BaseTestProblem, ConstrainedBaseTestProblem
from botorch.test_functions.multi_objective import MultiObjectiveTestProblem
from torch import Tensor

from plumbline.core.errors import PlumblineError, kind_of
from plumbline.core.options import parse
from plumbline.core.outcomes import Noise, Outcome, Role
from plumbline.problems.base import Context, Problem, problems
from plumbline.problems.declared import refuse_odd_declarations
from plumbline.problems.evaluation import spread
from plumbline.problems.options import ProblemOptions
from plumbline.spaces.box import Box


def build_problem(name: str, options: dict[str, Any], context: Context) -> Problem:
    """Return the problem called `name`.

    Raises:
        PlumblineError: the name is unknown, the options are not the problem's, or what was built is no problem.
    """
    entry = problems[name]
    made = entry.build(parse(entry.options, options, f"problem {name!r}"), context)
    if not isinstance(made, Problem | BaseTestProblem):
        raise PlumblineError(f"problem {name!r} is {kind_of(made)}: a BoTorch test problem or a Problem is wanted")
    problem = replace(made if isinstance(made, Problem) else problem_of(made), name=name)
    refuse_odd_declarations(problem)
    return problem


def problem_of(function: BaseTestProblem, **more: Any) -> Problem:
    """Return a BoTorch test problem as a problem over its box; `more` overrides fields."""
    several = isinstance(function, MultiObjectiveTestProblem)
    objectives = function.num_objectives
    noise = _noises(function.noise_std, objectives)
    references = function.ref_point.tolist() if several else [None]
    names = [f"objective-{i + 1}" for i in range(objectives)] if several else ["objective"]
    outcomes = [
        Outcome(name, "objective", noise[i], reference)
        for i, (name, reference) in enumerate(zip(names, references, strict=True))
    ]
    if isinstance(function, ConstrainedBaseTestProblem):
        slack = _noises(function.constraint_noise_std, function.num_constraints)
        role: Role = "at_least_zero"
        outcomes += [Outcome(f"constraint-{i + 1}", role, sd) for i, sd in enumerate(slack)]
    described = Problem(
        function,
        Box(function.bounds),
        tuple(outcomes),
        optimum=None if several else _optimal_value(function),
        optimisers=_optimisers(function),
    )
    return replace(described, **more)


def with_noise(function: BaseTestProblem, options: ProblemOptions) -> BaseTestProblem:
    """Return a test problem with the observation noise of `options`."""
    if options.noise_scale is None:
        function.noise_std = options.noise_std
    else:
        std = (options.noise_scale * spread(function)).tolist()
        function.noise_std = std[0] if len(std) == 1 else std
    return function


def _noises(noise: Noise | list[float] | None, outcomes: int) -> list[Noise]:
    """Return the noise of each outcome; BoTorch has None, one number, or a number per outcome."""
    if isinstance(noise, list | tuple):
        return [one or 0.0 for one in noise]
    return [noise or 0.0] * outcomes


def _optimal_value(function: BaseTestProblem) -> float | None:
    """Return the greatest value; None where BoTorch has none."""
    try:
        return float(function.optimal_value)
    except (AttributeError, NotImplementedError):
        return None


def _optimisers(function: BaseTestProblem) -> Tensor | None:
    """Return the maximisers, `k x d`; None where BoTorch has none."""
    try:
        return function.optimizers.to(function.bounds)
    except (AttributeError, NotImplementedError):
        return None
