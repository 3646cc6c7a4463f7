"""What a problem declares: odd outcomes, optima and points are refused by name, before anything is evaluated."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.test_functions import Branin, BraninCurrin
from botorch.test_functions.synthetic import ConstrainedGramacy
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.core.outcomes import Outcome
from plumbline.problems.build import problem_of
from plumbline.problems.declared import refuse_odd_declarations
from plumbline.store.spec import TrialSpec
from plumbline.trials import run_trial

ROLES: list[Any] = ["objective", "at_least_zero", "zero"]


def declared(function: Any, **more: Any) -> None:
    """Check a problem of a function, some of whose fields are others."""
    refuse_odd_declarations(problem_of(function(negate=True), **more))


@pytest.mark.parametrize("optimum", [math.inf, -math.inf, math.nan, "3", torch.tensor(0.0), True])
def test_an_optimum_is_a_finite_number(optimum: Any) -> None:
    with pytest.raises(PlumblineError, match=r"its optimum is .*: a finite number is wanted, or None"):
        declared(Branin, optimum=optimum)


def test_an_optimum_is_of_one_objective() -> None:
    with pytest.raises(PlumblineError, match="an optimum and several objectives: leave the optimum out"):
        declared(BraninCurrin, optimum=1.0)


@pytest.mark.parametrize("noise", [-0.1, math.nan, math.inf, "0.1", None, torch.tensor(0.1)])
def test_noise_is_a_standard_deviation(noise: Any) -> None:
    with pytest.raises(PlumblineError, match=r"outcome 'cost' has noise of .*: a standard deviation, or a function"):
        declared(Branin, outcomes=(Outcome("cost", noise=noise),))


@given(st.lists(st.sampled_from(ROLES), max_size=4))
def test_objectives_come_before_constraints(roles: list[Any]) -> None:
    outcomes = tuple(Outcome(f"o{i}", role) for i, role in enumerate(roles))
    first = next((i for i, role in enumerate(roles) if role != "objective"), len(roles))
    if first > 0 and "objective" not in roles[first:]:
        declared(ConstrainedGramacy, outcomes=outcomes, optimum=None)
    else:
        with pytest.raises(PlumblineError, match="one objective at least is wanted, and objectives come before"):
            declared(ConstrainedGramacy, outcomes=outcomes, optimum=None)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("cost", "declares the outcome 'cost': an Outcome is wanted"),
        (Outcome("cost", "objectve"), "the role 'objectve': objective, at_least_zero, zero are known"),  # type: ignore[arg-type]
        (Outcome("cost", reference=math.nan), "the reference nan: a finite number, or None"),
    ],
)
def test_an_odd_outcome_is_named(outcome: Any, words: str) -> None:
    with pytest.raises(PlumblineError, match=words):
        declared(Branin, outcomes=(outcome,))


@pytest.mark.parametrize("field", ["optimisers", "holdout"])
@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([[0.0, 0.0]], "are a list: n x 2 points"),
        (torch.zeros(3), "are 3 and float32: n x 2 points"),
        (torch.zeros(3, 7, dtype=torch.float64), "are 3 x 7 and float64: n x 2 points"),
    ],
)
def test_points_have_a_column_an_input(field: str, points: Any, words: str) -> None:
    with pytest.raises(PlumblineError, match=words):
        declared(Branin, **{field: points})


def test_a_space_is_one() -> None:
    with pytest.raises(PlumblineError, match="its space is a list: a Space is wanted"):
        declared(Branin, space=[(0, 1), (0, 1)])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"optimum": math.inf}, "problem 'odd': its optimum is inf"),
        (
            {"outcomes": (Outcome("cost", noise=lambda X: X),)},
            "the noise of 'cost' as 4 x 2: 4 x 1 in float64 is wanted",
        ),
        ({"outcomes": (Outcome("cost", noise=lambda X: 0.1),)}, "the noise of 'cost' as a float: a tensor of 4 x 1"),  # type: ignore[arg-type, return-value]
        ({"outcomes": (Outcome("cost", noise=lambda X: -1 - X[:, 1]),)}, "as the noise of 'cost'"),
        ({"notes": lambda X, F: 3}, "returned `notes` of type int: a dictionary is wanted"),
        ({"notes": lambda X, F: {"a": math.nan}}, "returned `notes` with 'a': nan; finite floats by name are wanted"),
    ],
)
def test_the_trial_fails_in_one_line(
    fields: dict[str, Any],
    words: str,
    cheap_spec: Callable[..., TrialSpec],
    register: Callable[..., None],
    tmp_path: Path,
) -> None:
    register("problem", "odd", lambda *_: problem_of(Branin(negate=True), **fields), "plumbline.problems.synthetic")
    folder = run_trial(cheap_spec("odd", "random", size=4), tmp_path, tmp_path)
    assert folder.failed
    assert words in folder.error_path.read_text()
