"""Values and observations: whether values respect the optimum that their problem declares."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from botorch.test_functions import Ackley, Branin, Hartmann, Levy, Rastrigin, SixHumpCamel
from botorch.test_functions.synthetic import ConstrainedGramacy, SyntheticTestFunction
from hypothesis import given
from hypothesis import strategies as st

from plumbline.problems.build import problem_of
from plumbline.problems.evaluation import BEYOND, beyond_optimum, values
from plumbline.spaces.box import uniform
from plumbline.store.spec import TrialSpec
from plumbline.trials import run_trial

FUNCTIONS = (Ackley, Branin, Hartmann, Levy, Rastrigin, SixHumpCamel)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_botorchs_maximisers_do_not_exceed_its_rounded_optima(function: type[SyntheticTestFunction]) -> None:
    problem = problem_of(function(negate=True))
    assert problem.optimisers is not None
    assert not beyond_optimum(problem, values(problem, problem.optimisers)).any()


@given(st.sampled_from(FUNCTIONS), st.floats(-1e3, 1e3), st.integers(0, 99))
def test_values_beyond_a_declared_optimum_are_found(
    function: type[SyntheticTestFunction], optimum: float, seed: int
) -> None:
    problem = problem_of(function(negate=True), optimum=optimum)
    F = values(problem, uniform(problem.bounds, 16, torch.Generator().manual_seed(seed)))
    slack = BEYOND * max(1.0, abs(optimum))
    assert beyond_optimum(problem, F).tolist() == [value > optimum + slack for value in F[:, 0].tolist()]
    assert not beyond_optimum(replace(problem, optimum=None), F).any()


def test_infeasible_and_failed_values_may_exceed_the_optimum() -> None:
    problem = problem_of(ConstrainedGramacy(negate=True), optimum=-0.6)
    F = torch.tensor([[0.0, 1.0, 1.0], [0.0, -1.0, 1.0], [math.inf, 1.0, 1.0], [math.nan, 1.0, 1.0], [-1.0, 1.0, 1.0]])
    assert beyond_optimum(problem, F.double()).tolist() == [True, False, False, False, False]
    equality = replace(problem, outcomes=(*problem.outcomes[:2], replace(problem.outcomes[2], role="zero")))
    F = torch.tensor([[0.0, 1.0, 1.0], [0.0, 1.0, 0.0]])
    assert beyond_optimum(equality, F.double()).tolist() == [False, True]


def test_a_function_to_be_minimised_is_refused_by_name(
    cheap_spec: Callable[..., TrialSpec], register: Callable[..., None], tmp_path: Path
) -> None:
    register("problem", "wrong-way", lambda *_: problem_of(Branin()), "plumbline.problems.synthetic")
    folder = run_trial(cheap_spec("wrong-way", "random"), tmp_path, tmp_path)
    assert folder.failed
    error = folder.error_path.read_text()
    assert "problem 'wrong-way' has the value" in error
    assert "exceeds its optimum 0.397887" in error
    assert "needs `negate=True`" in error
