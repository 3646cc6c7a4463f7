"""The constrained Branin function against what was read off the figure, and its minimum against other searches."""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import minimize, minimize_scalar
from torch import Tensor

from plumbline.problems.base import Context, Problem
from plumbline.problems.build import build_problem
from plumbline.problems.evaluation import values

READ = 0.007
"""How far an edge of a band may be from where it was read."""


@pytest.fixture
def problem(context: Callable[[int], Context]) -> Problem:
    return build_problem("constrained-branin", {}, context(0))


def at(problem: Problem, *points: tuple[float, float]) -> Tensor:
    return values(problem, torch.tensor(points, dtype=torch.float64))


def half_widths(problem: Problem, x1: float) -> list[float]:
    """Return half the widths in x2 of the feasible bands at `x1`, from below."""
    x2 = torch.linspace(0, 1, 20_001, dtype=torch.float64)
    inside = values(problem, torch.stack([torch.full_like(x2, x1), x2], -1))[:, 1] >= 0
    edges = torch.diff(inside.int(), prepend=torch.zeros(1), append=torch.zeros(1))
    return ((x2[(edges == -1).nonzero()[:, 0] - 1] - x2[(edges == 1).nonzero()[:, 0]]) / 2).tolist()


def test_has_an_objective_an_inequality_and_an_equality(problem: Problem) -> None:
    assert problem.roles == ["objective", "at_least_zero", "zero"]
    assert [outcome.name for outcome in problem.outcomes] == ["objective", "bands", "parabola"]
    assert problem.bounds.tolist() == [[0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize("point", [(0.402, 1.0), (0.543, 0.0), (0.757, 0.0), (0.898, 1.0)])
def test_the_parabola_is_where_it_was_read(problem: Problem, point: tuple[float, float]) -> None:
    x1, x2 = point
    left, right = at(problem, (x1 - 0.003, x2), (x1 + 0.003, x2))[:, 2].tolist()
    assert left * right < 0


@pytest.mark.parametrize(("x1", "width"), [(0.53, 0.06), (0.77, 0.06), (0.93, 0.125), (1.0, 0.115)])
def test_the_bands_are_as_wide_as_they_were_read(problem: Problem, x1: float, width: float) -> None:
    assert half_widths(problem, x1) == pytest.approx([width] * 3, abs=READ)


def test_the_middle_band_is_closed_for_a_while(problem: Problem) -> None:
    assert half_widths(problem, 0.69) == pytest.approx([0.018, 0.018], abs=READ)
    x1 = torch.linspace(0.5, 0.8, 3_001, dtype=torch.float64)
    closed = x1[values(problem, torch.stack([x1, torch.full_like(x1, 0.483)], -1))[:, 1] < 0]
    assert closed.min().item() == pytest.approx(0.645, abs=1.1 * READ)
    assert closed.max().item() == pytest.approx(0.705, abs=READ)


def test_nothing_is_feasible_on_the_left(problem: Problem) -> None:
    x1, x2 = torch.meshgrid(*[torch.linspace(0, 1, 501, dtype=torch.float64)] * 2, indexing="ij")
    bands = values(problem, torch.stack([x1, x2], -1).reshape(-1, 2))[:, 1].reshape(501, 501)
    begins = x1[(bands >= 0).any(1), 0].min().item()
    assert begins == pytest.approx(0.42, abs=0.01)


@pytest.mark.parametrize("middle", [0.147, 0.483, 0.82])
def test_the_bands_lie_where_they_were_read(problem: Problem, middle: float) -> None:
    below, above = at(problem, (0.93, middle - 0.1), (0.93, middle + 0.1))[:, 1].tolist()
    assert below == pytest.approx(above, abs=0.05)
    assert min(below, above) > 0


def test_the_objective_is_its_formula(problem: Problem) -> None:
    for x1, x2 in [(0.1, 0.9), (0.5, 0.5), (1.0, 0.0)]:
        u, v = 15 * x1 - 5, 15 * x2
        branin = (v - 5.1 / (4 * math.pi**2) * u**2 + 5 / math.pi * u - 6) ** 2
        branin += 10 * (1 - 1 / (8 * math.pi)) * math.cos(u) + 10
        assert at(problem, (x1, x2))[0, 0].item() == pytest.approx(-(branin + 5 * u), rel=1e-12)


def test_the_minimum_is_where_the_figure_marks_it(problem: Problem) -> None:
    assert problem.optimisers is not None
    assert torch.linalg.vector_norm(problem.optimisers[0] - problem.optimisers.new_tensor([0.507, 0.183])) < 0.02


@pytest.mark.slow
def test_the_minimum_is_the_best_along_the_parabola(problem: Problem) -> None:
    """By one-dimensional searches from each of many brackets of both branches: to 1e-9 in value, 1e-6 in place."""

    def point(x2: float, side: int) -> tuple[float, float]:
        return (0.65 + side * math.sqrt((x2 + 0.229) / 20), x2)

    found = []
    for side in (-1, 1):
        for low, high in pairwise(np.linspace(0, 1, 41)):

            def value(x2: float, side: int = side) -> float:
                objective, bands, _ = at(problem, point(x2, side))[0].tolist()
                return -objective if bands >= 0 else math.inf

            ends = [(value(x2), x2) for x2 in (low, high)]
            solved = minimize_scalar(value, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
            found += [(*one, side) for one in (*ends, (solved.fun, solved.x))]
    best, x2, side = min(found)
    assert problem.optimum is not None
    assert problem.optimisers is not None
    assert -best == pytest.approx(problem.optimum, abs=1e-9)
    assert point(x2, side) == pytest.approx(problem.optimisers[0].tolist(), abs=1e-6)


@pytest.mark.slow
def test_no_constrained_search_finds_a_better_one(problem: Problem) -> None:
    """From points all over the square, by a search that knows nothing of the parabola's formula."""
    assert problem.optimum is not None

    def value(x: np.ndarray, outcome: int) -> float:
        return at(problem, (float(x[0]), float(x[1])))[0, outcome].item()

    found = []
    for start in np.random.default_rng(0).random((6, 2)):
        solved = minimize(
            lambda x: -value(x.clip(0, 1), 0),
            start,
            method="SLSQP",
            bounds=[(0, 1)] * 2,
            constraints=[
                {"type": "ineq", "fun": lambda x: value(x.clip(0, 1), 1)},
                {"type": "eq", "fun": lambda x: value(x.clip(0, 1), 2)},
            ],
        )
        if solved.success:
            found.append(-solved.fun)
    assert max(found) == pytest.approx(problem.optimum, abs=1e-4)


@pytest.mark.slow
def test_gramacys_minimum_is_where_its_wave_begins(context: Callable[[int], Context]) -> None:
    """Along the edge of the first constraint, to full precision; the second is not active."""
    gramacy = build_problem("constrained-gramacy", {}, context(0))
    assert gramacy.roles == ["objective", "at_least_zero", "at_least_zero"]
    assert gramacy.optimisers is not None
    there = values(gramacy, gramacy.optimisers)[0]
    assert there[0].item() == pytest.approx(gramacy.optimum, abs=1e-11)
    assert there[1].item() == pytest.approx(0.0, abs=1e-10)
    assert there[2] > 1
    axis = torch.linspace(0, 1, 2_001, dtype=torch.float64)
    grid = values(gramacy, torch.cartesian_prod(axis, axis))
    best = grid[(grid[:, 1:] >= 0).all(-1), 0].max().item()
    assert gramacy.optimum is not None
    assert gramacy.optimum - 1e-3 < best <= gramacy.optimum
