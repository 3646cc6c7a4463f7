"""What every registered problem must do; a problem registered later is tested without a change here."""

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import pytest
import torch
from botorch.test_functions.base import BaseTestProblem
from botorch.test_functions.multi_objective import MultiObjectiveTestProblem
from botorch.utils.testing import (
    BaseTestProblemTestCaseMixIn,
    BotorchTestCase,
    MultiObjectiveTestProblemTestCaseMixin,
    SyntheticTestFunctionTestCaseMixin,
)
from problem_options import acceptable

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.reference_point import reference_point
from plumbline.problems.base import Context, Problem, problems
from plumbline.problems.build import build_problem
from plumbline.problems.evaluation import evaluate, noise_std, spread, values
from plumbline.spaces.box import Box, uniform
from plumbline.spaces.table import Table

EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "antibodies": [{"dataset": "small-antibodies", "pool": 30}],
    "cnn": [{"images": "small-digits", "epochs": 1, "shrink": 64}],
    "guacamol": [{"objective": "osimertinib-mpo", "model": "small-vae"}],
    "hartmann": [{"dim": 3}, {"dim": 6}],
    "lasso-dna": [{"dataset": "small-dna"}],
    "lunar-lander": [{"terrains": 2}, {"variant": "code"}],
    "molecules": [
        {"dataset": "small-molecules", "target": "qed", "pool": 30, "holdout_fraction": 0.2},
        {"dataset": "small-molecules", "target": "sa", "pool": 40, "holdout_fraction": 0.0, "maximise": False},
        {"dataset": "small-docking", "target": "3pbl_docking", "pool": 30, "maximise": False},
    ],
    "online-lda": [{"grid": "small-grid"}, {"grid": "small-grid", "measure": "with_topics"}],
    "rkhs": [{"dim": 1}, {"dim": 2, "kernel": "matern52", "basis": 40}],
}
"""Options of the problems that cannot be built from none or from a dimension of two alone, or are slow then."""

Build = Callable[..., Problem]


def _examples(name: str) -> list[dict[str, Any] | None]:
    if name in EXAMPLES:
        return list(EXAMPLES[name])
    return [next((options for options in ({}, {"dim": 2}) if acceptable(name, options)), None)]


SLOW = ("penicillin",)
"""Problems that integrate a differential equation at each point."""

CASES = [
    pytest.param((name, options), marks=pytest.mark.slow) if name in SLOW else (name, options)
    for name in problems.entries()
    for options in _examples(name)
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def build(request: pytest.FixtureRequest, context: Callable[[int], Context]) -> Build:
    """Build the case's problem, with more options where a test wants some; once for all tests where none does."""
    name, options = request.param
    if options is None:
        pytest.fail(f"problem {name!r} needs options: add an example to EXAMPLES in {__file__}")

    plain = cache(lambda: build_problem(name, options, context(0)))

    def make(seed: int = 0, **more: Any) -> Problem:
        return build_problem(name, {**options, **more}, context(seed)) if seed or more else plain()

    make.takes_scale = "noise_scale" in problems[name].options.model_fields  # type: ignore[attr-defined]
    make.takes_noise = "noise_std" in problems[name].options.model_fields  # type: ignore[attr-defined]
    return make


def points(problem: Problem, n: int, seed: int = 1) -> torch.Tensor:
    """Return `n` points where the problem may be asked: rows of its table if it has one."""
    generator = torch.Generator().manual_seed(seed)
    if isinstance(problem.space, Table):
        return problem.space.rows[torch.randint(len(problem.space.rows), (n,), generator=generator)]
    return uniform(problem.bounds, n, generator)


def feasible_values(problem: Problem, X: torch.Tensor, tolerance: float = 1e-9) -> torch.Tensor:
    """Return the objectives of those of `n x d` points where all constraints hold."""
    F = values(problem, X)
    holds = {
        "objective": lambda f: torch.isfinite(f),
        "at_least_zero": lambda f: f >= 0,
        "zero": lambda f: f.abs() <= tolerance,
    }
    feasible = torch.stack([holds[role](f) for role, f in zip(problem.roles, F.unbind(-1), strict=True)]).all(0)
    return F[feasible][:, [role == "objective" for role in problem.roles]]


def test_bounds_are_a_finite_box(build: Build) -> None:
    problem = build()
    assert problem.bounds.shape == (2, problem.space.dim)
    assert problem.bounds.dtype == torch.float64
    assert torch.isfinite(problem.bounds).all()
    assert (problem.bounds[0] < problem.bounds[1]).all()


def test_values_are_finite_float64_and_the_same_row_by_row(build: Build) -> None:
    problem = build()
    X = points(problem, 6)
    function = problem.function
    together = function(X, noise=False)
    apart = torch.stack([function(row, noise=False) for row in X])
    batched = function(X.reshape(2, 3, -1), noise=False)
    outcomes = problem.roles.count("objective")
    assert together.dtype == torch.float64
    assert together.shape == ((6,) if outcomes == 1 else (6, outcomes))
    assert torch.isfinite(together).all()
    torch.testing.assert_close(together, apart, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(together.reshape(batched.shape), batched, rtol=1e-12, atol=1e-12)


def test_is_to_be_maximised(build: Build) -> None:
    """BoTorch gives several outcomes no direction: that one is told by the sign of the reference point."""
    problem = build()
    point = reference_point(problem.outcomes)
    if point is None:
        assert not problem.function.is_minimization_problem
        return
    assert problem.roles == ["objective"] * len(point)
    better = (values(problem, points(problem, 200)) > point).all(dim=-1)
    assert better.any()
    assert problem.function.max_hv > 0


def _optimum(problem: Problem) -> float:
    if problem.optimum is None:
        pytest.skip("no optimal value is known")
    return problem.optimum


def test_optimal_value_is_attained(build: Build) -> None:
    problem = build()
    optimum = _optimum(problem)
    if isinstance(problem.space, Table):
        found = values(problem, problem.space.rows).max()
    elif problem.optimisers is not None:
        found = feasible_values(problem, problem.optimisers)
        assert len(found) == len(problem.optimisers)
    else:
        pytest.skip("no optimiser is known")
    torch.testing.assert_close(found, torch.full_like(found, optimum), atol=1e-4, rtol=1e-5)


def test_optimal_value_is_not_exceeded(build: Build) -> None:
    """Regret is drawn on a logarithmic scale: it must not go below zero at the optimum either."""
    problem = build()
    optimum = _optimum(problem)
    assert (feasible_values(problem, points(problem, 2000)) <= optimum + 1e-9).all()
    if problem.optimisers is not None:
        assert feasible_values(problem, problem.optimisers).max() <= optimum + 1e-9


def test_same_options_and_seed_give_the_same_problem(build: Build) -> None:
    one, other = build(seed=3), build(seed=3)
    X = points(one, 5)
    assert torch.equal(one.bounds, other.bounds)
    assert torch.equal(values(one, X), values(other, X))
    assert torch.equal(values(one, X), values(one, X))


def test_noise_is_the_standard_deviation_times_the_draws(build: Build) -> None:
    if build.takes_noise:  # type: ignore[attr-defined]
        problem = build(noise_std=0.25)
        assert (noise_std(problem, points(problem, 5)) == 0.25).all()
    else:
        problem = build()
    X = points(problem, 5)
    F = values(problem, X)
    eps = torch.randn(F.shape, generator=torch.Generator().manual_seed(2), dtype=F.dtype)
    before = torch.get_rng_state()
    Y, exact = evaluate(problem, X, eps)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(exact, F)
    assert torch.equal(Y, F + noise_std(problem, X) * eps)
    assert torch.equal(evaluate(problem, X, torch.zeros_like(eps))[0], F)


@pytest.mark.slow
def test_noise_scale_is_in_units_of_the_functions_own_spread(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    if not build.takes_scale:  # type: ignore[attr-defined]
        pytest.skip("has no option noise_scale")
    spreads: list[torch.Tensor] = []

    def noted(function: BaseTestProblem) -> torch.Tensor:
        spreads.append(spread(function))
        return spreads[-1]

    with monkeypatch.context() as patch:
        patch.setattr("plumbline.problems.build.spread", noted)
        problem = build(noise_scale=0.1)
    X = points(problem, 1000)
    std = noise_std(problem, X[:5])
    assert std.shape == (5, len(problem.outcomes))
    torch.testing.assert_close(std, 0.1 * spreads[-1].expand(5, -1), rtol=1e-12, atol=0.0)
    # A sample that has nothing to do with the Sobol points: the heaviest tails are Rosenbrock's.
    sampled = values(problem, X).std(dim=0)
    torch.testing.assert_close(std[0], 0.1 * sampled, rtol=0.1, atol=0.0)
    assert torch.equal(values(problem, X[:5]), values(build(), X[:5]))


def test_two_kinds_of_noise_are_refused(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    if not build.takes_scale:  # type: ignore[attr-defined]
        pytest.skip("has no option noise_scale")
    with pytest.raises(PlumblineError, match="noise_std and noise_scale") as caught:
        build(noise_std=0.1, noise_scale=0.1)
    assert "\n" not in str(caught.value)
    monkeypatch.setattr("plumbline.problems.build.spread", lambda function: torch.ones(function.num_objectives))
    assert (noise_std(build(noise_std=0.0, noise_scale=0.0), torch.zeros(1, 1, dtype=torch.float64)) == 0).all()


def test_the_space_draws_points_that_may_be_asked_for(build: Build) -> None:
    problem = build()
    nothing = torch.empty(0, problem.space.dim, dtype=torch.float64)
    X = problem.space.draw(4, History(nothing, nothing), torch.Generator().manual_seed(0))
    assert X.shape == (4, problem.space.dim)
    assert torch.isfinite(values(problem, X)).all()


class _Mixin(BaseTestProblemTestCaseMixIn, BotorchTestCase):
    functions: ClassVar[list[BaseTestProblem]] = []

    def runTest(self) -> None:  # noqa: N802 - unittest's name
        self.test_forward_and_evaluate_true()


class _SyntheticMixin(SyntheticTestFunctionTestCaseMixin, BotorchTestCase):
    functions: ClassVar[list[BaseTestProblem]] = []

    def runTest(self) -> None:  # noqa: N802
        self.test_optimal_value()
        self.test_optimizer()


class _SeveralMixin(MultiObjectiveTestProblemTestCaseMixin, BotorchTestCase):
    functions: ClassVar[list[BaseTestProblem]] = []

    def runTest(self) -> None:  # noqa: N802
        self.test_attributes()
        self.test_max_hv()
        # Its test of the reference point holds for no function that is turned to be maximised.


@pytest.mark.filterwarnings("ignore")
def test_its_function_is_a_test_problem_of_botorchs(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """BoTorch's own tests of its test problems; they ask at points of the box, of which a table has none."""
    problem = build()
    if not isinstance(problem.space, Box):
        pytest.skip("a table has values at its rows only")
    several = isinstance(problem.function, MultiObjectiveTestProblem)
    for mixin in (_Mixin, _SeveralMixin if several else _SyntheticMixin):
        monkeypatch.setattr(mixin, "functions", [problem.function])
        case = mixin()
        case.setUp()
        case.runTest()
