"""From any test problem of BoTorch's to a problem of the study."""

import math

import pytest
import torch
from botorch.test_functions import Branin
from botorch.test_functions.multi_objective import BraninCurrin
from botorch.test_functions.synthetic import ConstrainedGramacy, ConstrainedHartmann
from torch import Tensor

from plumbline.core.outcomes import Outcome
from plumbline.core.reference_point import reference_point
from plumbline.problems.build import problem_of
from plumbline.problems.evaluation import evaluate, noise_std, observe, observe_holdout, values
from plumbline.spaces.box import Box, uniform


def points(bounds: Tensor, n: int = 5) -> Tensor:
    return uniform(bounds, n, torch.Generator().manual_seed(0))


def test_one_objective() -> None:
    problem = problem_of(Branin(negate=True, noise_std=0.5))
    assert problem.outcomes == (Outcome("objective", "objective", 0.5),)
    assert problem.optimum == pytest.approx(-0.397887, abs=1e-6)
    assert problem.optimisers is not None
    assert problem.optimisers.shape == (3, 2)
    assert type(problem.space) is Box
    assert reference_point(problem.outcomes) is None


def test_several_objectives_have_reference_points_and_noises_of_their_own() -> None:
    problem = problem_of(BraninCurrin(negate=True, noise_std=[0.5, 2.0]))
    assert problem.roles == ["objective", "objective"]
    assert [outcome.noise for outcome in problem.outcomes] == [0.5, 2.0]
    assert problem.optimum is None
    point = reference_point(problem.outcomes)
    assert point is not None
    assert point.tolist() == [-18.0, -6.0]


def test_constraints_are_outcomes_at_least_zero() -> None:
    function = ConstrainedGramacy(negate=True)
    problem = problem_of(function)
    assert problem.roles == ["objective", "at_least_zero", "at_least_zero"]
    X = points(problem.bounds)
    F = values(problem, X)
    assert F.shape == (5, 3)
    assert torch.equal(F[:, 0], function(X, noise=False))
    assert torch.equal(F[:, 1:], function.evaluate_slack_true(X))
    assert reference_point(problem.outcomes) is None


def test_a_constraint_has_a_noise_of_its_own() -> None:
    problem = problem_of(ConstrainedHartmann(dim=6, negate=True, noise_std=0.1, constraint_noise_std=0.3))
    X = points(problem.bounds)
    assert noise_std(problem, X).tolist() == [[0.1, 0.3]] * 5
    Y, F = evaluate(problem, X, torch.ones(5, 2, dtype=torch.float64))
    torch.testing.assert_close(Y - F, torch.tensor([[0.1, 0.3]], dtype=torch.float64).expand(5, 2))


def test_an_evaluations_chance_is_its_streams() -> None:
    problem = problem_of(Branin(negate=True, noise_std=0.5))
    X = points(problem.bounds, 3)
    streams = [torch.Generator().manual_seed(i) for i in range(3)]
    Y, F = observe(problem, X, streams)
    alone, _ = observe(problem, X[2:], [torch.Generator().manual_seed(2)])
    assert torch.equal(Y[2:], alone)
    assert not torch.equal(Y, F)
    held = observe_holdout(problem, X, torch.Generator().manual_seed(7))
    assert held.shape == (3, 1)


def test_what_is_said_replaces_what_is_read_off() -> None:
    problem = problem_of(Branin(negate=True), optimum=math.pi, may_fail=True)
    assert (problem.optimum, problem.may_fail) == (math.pi, True)
