"""What every initial design does."""

import pytest
import torch
from design_cases import BOUNDS, generator

from plumbline.core.errors import PlumblineError
from plumbline.designs.base import designs, initial_design
from plumbline.designs.random_orthant import random_orthant
from plumbline.designs.sobol import sobol
from plumbline.designs.two_corners import two_corners
from plumbline.problems.base import Problem
from plumbline.problems.build import problem_of
from plumbline.problems.synthetic import Alpine
from plumbline.registry.references import InitialDesign
from plumbline.spaces.box import uniform


@pytest.mark.parametrize("design", [uniform, sobol, random_orthant, two_corners])
@pytest.mark.parametrize("n", [1, 7, 64])
def test_fills_the_box_and_is_reproducible(design, n: int) -> None:
    X = design(BOUNDS, n, generator(4))
    assert X.shape == (n, 3)
    assert X.dtype == torch.float64
    assert (BOUNDS[0] <= X).all()
    assert (BOUNDS[1] >= X).all()
    assert torch.equal(X, design(BOUNDS, n, generator(4)))
    assert not torch.equal(X, design(BOUNDS, n, generator(5)))


@pytest.mark.parametrize("design", [uniform, sobol])
def test_reaches_both_halves_of_every_axis(design) -> None:
    upper = design(BOUNDS, 64, generator(0)) > BOUNDS.mean(dim=0)
    assert (upper.double().mean(dim=0) - 0.5).abs().max() < 0.2


@pytest.mark.parametrize("design", [uniform, sobol, random_orthant, two_corners])
def test_leaves_the_global_stream_alone(design) -> None:
    before = torch.get_rng_state()
    design(BOUNDS, 5, generator(0))
    assert torch.equal(torch.get_rng_state(), before)


def test_box_designs_by_name() -> None:
    problem = problem_of(Alpine(dim=2, negate=True))
    functions = {"uniform": uniform, "sobol": sobol, "random-orthant": random_orthant, "two-corners": two_corners}
    for name, design in functions.items():
        X = initial_design(InitialDesign(design=name, size=5), problem, generator(3))
        assert torch.equal(X, design(problem.bounds, 5, generator(3)))


@pytest.mark.parametrize("design", ["sobol", "random-orthant", "two-corners", "uniform-outside"])
def test_box_design_on_a_table_says_what_a_table_takes(design: str, table: Problem) -> None:
    options = {"region": [[0.0, 0.0], [0.5, 0.5]]} if design == "uniform-outside" else {}
    with pytest.raises(PlumblineError, match=r"'worst' or 'uniform'"):
        initial_design(InitialDesign(design=design, size=3, options=options), table, generator(0))


def test_every_design_has_a_module_of_its_own() -> None:
    modules = [entry.module for entry in designs.entries().values()]
    assert len(set(modules)) == len(modules) == 10


def test_an_unknown_design_or_option_is_told_with_what_there_is(table: Problem) -> None:
    with pytest.raises(ValueError, match="unknown design 'sobl': did you mean 'sobol'"):
        InitialDesign(design="sobl", size=3)
    with pytest.raises(PlumblineError, match="design 'uniform': unknown field 'seed'"):
        initial_design(InitialDesign(design="uniform", size=3, options={"seed": 1}), table, generator(0))
