"""Objectives, bounds and units at the edge of what numbers can be: the right rows, or one line."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.test_functions import SyntheticTestFunction
from handy import Make, Register, rows_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.problems.base import Context
from plumbline.problems.build import build_problem
from plumbline.trials import run_trial

SEARCH = {"search": {"restarts": 2, "raw_samples": 32, "maxiter": 50}}
Of = Callable[[torch.Tensor], torch.Tensor]


def hill(X: torch.Tensor) -> torch.Tensor:
    return torch.sin(2 * X[:, 0]) + torch.cos(X[:, 1] / 2) * (1 + X[:, 0] / 3)


class Edge(SyntheticTestFunction):
    """Whatever `of` says, in the bounds that are given."""

    dim = 2
    continuous_inds = [0, 1]  # noqa: RUF012
    _bounds = [(-2.0, 2.0), (0.0, 10.0)]  # noqa: RUF012
    _check_grad_at_opt = False
    of: Of = hill

    def _evaluate_true(self, X: torch.Tensor) -> torch.Tensor:
        return type(self).of(X)


@pytest.fixture
def run(register: Register, cheap_spec: Make, tmp_path_factory: pytest.TempPathFactory, monkeypatch: Any) -> Any:
    """Return what runs a method on an objective, and gives the rows."""
    register("problem", "edge", lambda options, context: Edge(), "plumbline.problems.synthetic")

    def make(method: str, of: Of, rounds: int = 3, **budget: Any) -> list[dict[str, Any]]:
        monkeypatch.setattr(Edge, "of", staticmethod(of))
        root = tmp_path_factory.mktemp("edge")
        options = {} if method in ("random", "sobol") else SEARCH
        return rows_of(run_trial(cheap_spec("edge", method, options=options, rounds=rounds, **budget), root, root))

    return make


def queries(rows: list[dict[str, Any]]) -> torch.Tensor:
    assert [row["status"] for row in rows] == ["ok"] * len(rows), rows[-1]["error"]
    return torch.tensor([row["x"] for row in rows], dtype=torch.float64)


@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(method=st.sampled_from(["ei", "ucb", "ts", "logei", "nei", "pi"]), power=st.floats(-100, 100))
def test_units_do_not_matter(method: str, power: float, run: Any) -> None:
    plain = queries(run(method, hill))
    scaled = queries(run(method, lambda X: 10**power * hill(X)))
    torch.testing.assert_close(scaled, plain, rtol=0.0, atol=0.02)  # of 4 x 10; tolerances of searches are relative


@pytest.mark.parametrize("method", ["ei", "ucb", "ts"])
@pytest.mark.parametrize("unit", [1e-13, 1e13])
def test_thirteen_orders_of_magnitude_do_not_matter(method: str, unit: float, run: Any) -> None:
    plain = queries(run(method, hill))
    scaled = queries(run(method, lambda X: unit * hill(X)))
    torch.testing.assert_close(scaled, plain, rtol=0.0, atol=0.02)


@pytest.mark.parametrize("method", ["ei", "ucb", "ts", "random"])
@pytest.mark.parametrize("value", [0.0, 3.7, -1e13, 1e-13])
def test_a_constant_objective(method: str, value: float, run: Any) -> None:
    X = queries(run(method, lambda X: torch.full((len(X),), value, dtype=torch.float64)))
    assert len(X.unique(dim=0)) == len(X)


@pytest.mark.parametrize("method", ["ei", "ucb", "ts", "sobol"])
@pytest.mark.parametrize("unit", [1e300, -1.7e308, 1e-300, 1e-310])
def test_what_is_too_large_or_small_for_a_surrogate(method: str, unit: float, run: Any) -> None:
    rows = run(method, lambda X: unit * (0.5 + 0.1 * torch.tanh(hill(X))))
    if method == "sobol":
        assert len(queries(rows)) == 7
        return
    assert [row["status"] for row in rows] == ["ok"] * 4 + ["error"]
    assert " for a surrogate: scale the objective" in rows[-1]["error"]
    assert rows[-1]["error"].startswith("observations of ")


@pytest.mark.parametrize("method", ["ei", "ucb", "ts"])
def test_a_jump_that_has_no_square(method: str, run: Any) -> None:
    rows = run(method, lambda X: 1.7e308 * X[:, 0].sign())
    assert rows[-1]["error"].startswith("observations of 1.7e+308 are too large for a surrogate")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_names_the_problem(value: float, run: Any) -> None:
    rows = run("ei", lambda X: torch.full((len(X),), value, dtype=torch.float64))
    assert rows[-1]["error"].startswith("problem 'edge' returned [")


numbers = st.floats(allow_nan=True, allow_infinity=True, width=64)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(low=numbers, high=numbers)
def test_bounds_are_ordered_finite_and_apart(low: float, high: float, register: Register, tmp_path: Path) -> None:
    class Bounded(Edge):
        _bounds = [(0.0, 1.0), (low, high)]  # noqa: RUF012

    from plumbline.problems.base import problems

    if "bounded" not in problems._entries:
        register("problem", "bounded", lambda *_: Edge(), "plumbline.problems.synthetic")
    entry = problems._entries["bounded"]
    problems._entries["bounded"] = type(entry)(
        entry.name, entry.summary, lambda *_: Bounded(), entry.options, entry.module
    )
    context = Context(tmp_path, torch.Generator())
    if math.isfinite(high - low) and low < high:
        assert build_problem("bounded", {}, context).name == "bounded"
        return
    with pytest.raises(PlumblineError, match=r"^problem 'bounded': bounds of input 2: \["):
        build_problem("bounded", {}, context)


@pytest.mark.parametrize("bounds", [(0.5, 0.5), (1.0, 0.0), (0.0, math.inf), (math.nan, 1.0)])
@pytest.mark.parametrize("method", ["ei", "random"])
def test_odd_bounds_are_a_row(bounds: tuple[float, float], method: str, run: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(Edge, "_bounds", [(0.0, 1.0), bounds])
    (row,) = run(method, hill)
    assert row["error"].startswith("problem 'edge': bounds of input 2: [")
