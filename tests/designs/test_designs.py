from dataclasses import replace

import pytest
import torch
from pydantic import ValidationError

from plumbline.core.errors import PlumblineError
from plumbline.designs.base import designs, initial_design
from plumbline.designs.part import PartOptions, part_of
from plumbline.designs.random_orthant import random_orthant
from plumbline.designs.sobol import sobol
from plumbline.designs.two_corners import two_corners
from plumbline.designs.uniform_outside import uniform_outside
from plumbline.designs.worst import worst
from plumbline.problems.base import Problem
from plumbline.problems.build import problem_of
from plumbline.problems.synthetic import Alpine
from plumbline.problems.tabular import TabularProblem
from plumbline.registry.references import InitialDesign
from plumbline.spaces.box import uniform
from plumbline.spaces.table import Table

BOUNDS = torch.tensor([[-2.0, 5.0, 0.0], [3.0, 6.0, 1e-3]], dtype=torch.float64)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def table() -> Problem:
    X = torch.rand(12, 2, generator=generator(0), dtype=torch.float64)
    y = torch.randn(12, generator=generator(1), dtype=torch.float64)
    function = TabularProblem(X[:10], y[:10], X[10:], y[10:])
    return problem_of(function, space=Table(function.bounds, function.candidates))


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


@pytest.mark.parametrize("outside", [False, True])
def test_a_part_of_the_box_or_what_is_outside_of_it(outside: bool) -> None:
    bounds = torch.tensor([[-10.0, -4.0], [10.0, 8.0]], dtype=torch.float64)
    options = PartOptions(low=-3.0, high=3.0, outside=outside)
    X = part_of(bounds, 200, generator(3), options)
    assert X.shape == (200, 2)
    assert ((bounds[0] <= X) & (bounds[1] >= X)).all()
    assert ((X.abs() <= 3).all(dim=-1) != outside).all()
    assert X.amax() > (7 if outside else 2.9)
    assert torch.equal(X, part_of(bounds, 200, generator(3), options))


@pytest.mark.parametrize("options", [{"low": -4.5, "high": 3.0}, {"low": -5.0, "high": 3.0, "outside": True}])
def test_a_part_that_is_not_in_the_box_is_refused(options: dict[str, float]) -> None:
    bounds = torch.tensor([[-4.0, -4.0], [8.0, 8.0]], dtype=torch.float64)
    with pytest.raises(PlumblineError, match="must lie inside the box"):
        part_of(bounds, 5, generator(3), PartOptions(**options))


@pytest.mark.parametrize("least", [1e-6, 0.0009])
def test_outside_of_nearly_all_of_the_box_is_refused(least: float) -> None:
    bounds = torch.tensor([[0.0] * 5, [1.0] * 5], dtype=torch.float64)
    with pytest.raises(PlumblineError, match="less than 1% of the box"):
        part_of(bounds, 5, generator(3), PartOptions(low=least, high=1.0, outside=True))
    assert len(part_of(bounds, 5, generator(3), PartOptions(low=0.1, high=1.0, outside=True))) == 5


def test_a_part_has_its_ends_in_order() -> None:
    with pytest.raises(ValidationError, match="`low` must be less than `high`"):
        PartOptions(low=1.0, high=1.0)


def test_orthant_is_one_and_seeds_reach_all() -> None:
    centre = BOUNDS.mean(dim=0)
    seen = set()
    for seed in range(60):
        X = random_orthant(BOUNDS, 8, generator(seed))
        halves = centre < X
        assert (halves == halves[0]).all()
        seen.add(tuple(halves[0].tolist()))
    assert len(seen) == 8


def test_orthant_is_filled_from_end_to_end() -> None:
    X = random_orthant(BOUNDS, 256, generator(0))
    half = (BOUNDS[1] - BOUNDS[0]) / 2
    assert ((X.amax(dim=0) - X.amin(dim=0)) / half).min() > 0.95


def test_two_corners_are_those_of_the_published_code() -> None:
    square = torch.tensor([[-10.0, -10.0], [10.0, 10.0]], dtype=torch.float64)
    X = two_corners(square, 2000, generator(0))
    low, high = (X <= -2).all(dim=-1), (X >= 2).all(dim=-1)
    assert (low ^ high).all()
    assert low.double().mean().item() == pytest.approx(0.5, abs=0.04)
    for corner in (X[low] + 10, X[high] - 2):
        # Uniform on [0, 8]^2: mean 4, standard deviation 8 / sqrt 12, inputs that know nothing of each other.
        assert corner.mean(dim=0).tolist() == pytest.approx([4.0, 4.0], abs=0.25)
        assert corner.std(dim=0).tolist() == pytest.approx([2.31, 2.31], abs=0.12)
        assert corner.T.corrcoef()[0, 1].abs() < 0.1


def test_two_corners_of_any_box_leave_its_middle_out() -> None:
    X = two_corners(BOUNDS, 500, generator(1))
    unit = (X - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])
    low, high = (unit <= 0.4 + 1e-12).all(dim=-1), (unit >= 0.6 - 1e-12).all(dim=-1)
    assert (low ^ high).all()
    assert low.any()
    assert high.any()


def test_a_longer_design_of_two_corners_begins_with_a_shorter_one() -> None:
    assert torch.equal(two_corners(BOUNDS, 4, generator(2)), two_corners(BOUNDS, 9, generator(2))[:4])


MIDDLE = torch.tensor([[-1.0, 5.2, 1e-4], [2.0, 5.9, 9e-4]], dtype=torch.float64)


@pytest.mark.parametrize("n", [1, 7, 64])
def test_uniform_outside_misses_its_region_and_is_reproducible(n: int) -> None:
    X = uniform_outside(BOUNDS, MIDDLE, n, generator(4))
    assert X.shape == (n, 3)
    assert X.dtype == torch.float64
    assert ((BOUNDS[0] <= X) & (BOUNDS[1] >= X)).all()
    assert ((MIDDLE[0] > X) | (MIDDLE[1] < X)).any(dim=-1).all()
    assert torch.equal(X, uniform_outside(BOUNDS, MIDDLE, n, generator(4)))
    assert not torch.equal(X, uniform_outside(BOUNDS, MIDDLE, n, generator(5)))


def test_uniform_outside_keeps_the_uniform_draws_that_miss() -> None:
    line, part = BOUNDS.new_tensor([[0.0], [1.0]]), BOUNDS.new_tensor([[0.6], [0.9]])
    missed = 0
    for seed in range(400):
        drawn, X = uniform(line, 3, generator(seed)), uniform_outside(line, part, 3, generator(seed))
        kept = drawn[(drawn < 0.6) | (drawn > 0.9)].unsqueeze(-1)
        assert torch.equal(X[: len(kept)], kept)
        missed += len(kept) == 3
    assert missed / 400 == pytest.approx(0.7**3, abs=0.07)


def test_uniform_outside_is_uniform_there() -> None:
    line, part = BOUNDS.new_tensor([[0.0], [1.0]]), BOUNDS.new_tensor([[0.6], [0.9]])
    X = uniform_outside(line, part, 4000, generator(0))
    assert (X < 0.3).double().mean().item() == pytest.approx(3 / 7, abs=0.03)
    assert (X > 0.9).double().mean().item() == pytest.approx(1 / 7, abs=0.03)


def outside(*region: list[float]) -> InitialDesign:
    return InitialDesign(design="uniform-outside", size=4, options={"region": list(region)})


def test_uniform_outside_by_name() -> None:
    problem = problem_of(Alpine(dim=2, negate=True))
    X = initial_design(outside([0.0, 0.0], [9.0, 9.0]), problem, generator(3))
    region = BOUNDS.new_tensor([[0.0, 0.0], [9.0, 9.0]])
    assert torch.equal(X, uniform_outside(problem.bounds, region, 4, generator(3)))
    beyond = initial_design(outside([11.0, 11.0], [12.0, 12.0]), problem, generator(3))
    assert torch.equal(beyond, uniform(problem.bounds, 4, generator(3)))


@pytest.mark.parametrize(
    ("region", "reason"),
    [
        ([[0.0], [1.0]], "a region of 1 inputs in a box of 2"),
        ([[-20.0, -10.0], [10.0, 9.99]], "leaves less than 1% of the box"),
        ([[1.0, 0.0], [0.0, 1.0]], r"region: a lower and an upper corner are expected: \[\[1.0, 0.0\], \[0.0, 1.0\]\]"),
        ([[0.0], [1.0, 2.0]], "a lower and an upper corner are expected"),
        ([[0.0, 0.0]], "region"),
    ],
)
def test_a_region_that_is_none_is_refused(region: list[list[float]], reason: str) -> None:
    with pytest.raises(PlumblineError, match=reason):
        initial_design(outside(*region), problem_of(Alpine(dim=2, negate=True)), generator(0))


def test_a_shared_design_is_uniform_and_the_same_in_all_trials() -> None:
    problem = problem_of(Alpine(dim=2, negate=True))
    wanted = InitialDesign(design="shared", size=64)
    X = initial_design(wanted, problem, generator(3))
    assert torch.equal(X, initial_design(wanted, problem, generator(4)))
    low, high = problem.bounds
    assert ((low <= X) & (high >= X)).all()
    assert (((low + high) / 2 < X).double().mean(dim=0) - 0.5).abs().max() < 0.2


def test_worst_are_the_lowest_values() -> None:
    candidates = torch.arange(5, dtype=torch.float64).unsqueeze(-1)
    values = torch.tensor([3.0, -1.0, 2.0, -1.0, 0.0], dtype=torch.float64)
    assert worst(candidates, values, 3).flatten().tolist() == [1.0, 3.0, 4.0]


def test_worst_design_of_a_table(table: Problem) -> None:
    X = initial_design(InitialDesign(design="worst", size=4), table, generator(0))
    chosen = table.function(X, noise=False)
    others = sorted(table.function(table.space.rows, noise=False).tolist())
    assert sorted(chosen.tolist()) == others[:4]


def test_uniform_design_of_a_table_draws_candidates_without_replacement(table: Problem) -> None:
    X = initial_design(InitialDesign(design="uniform", size=10), table, generator(0))
    assert sorted(X.tolist()) == sorted(table.space.rows.tolist())
    assert torch.equal(X[:3], initial_design(InitialDesign(design="uniform", size=3), table, generator(0)))


def test_box_designs_by_name() -> None:
    problem = problem_of(Alpine(dim=2, negate=True))
    functions = {"uniform": uniform, "sobol": sobol, "random-orthant": random_orthant, "two-corners": two_corners}
    for name, design in functions.items():
        X = initial_design(InitialDesign(design=name, size=5), problem, generator(3))
        assert torch.equal(X, design(problem.bounds, 5, generator(3)))


def test_worst_needs_a_table() -> None:
    with pytest.raises(PlumblineError, match="needs a table"):
        initial_design(InitialDesign(design="worst", size=3), problem_of(Alpine(dim=2, negate=True)), generator(0))


@pytest.mark.parametrize("design", ["sobol", "random-orthant", "two-corners", "uniform-outside"])
def test_box_design_on_a_table_says_what_a_table_takes(design: str, table: Problem) -> None:
    options = {"region": [[0.0, 0.0], [0.5, 0.5]]} if design == "uniform-outside" else {}
    with pytest.raises(PlumblineError, match=r"'worst' or 'uniform'"):
        initial_design(InitialDesign(design=design, size=3, options=options), table, generator(0))


def test_more_points_than_rows(table: Problem) -> None:
    with pytest.raises(PlumblineError, match="11 rows from a table of 10"):
        initial_design(InitialDesign(design="uniform", size=11), table, generator(0))


def test_source_needs_a_shift() -> None:
    with pytest.raises(PlumblineError, match="needs a problem with covariate shift"):
        initial_design(InitialDesign(design="source", size=3), problem_of(Alpine(dim=2, negate=True)), generator(0))


def test_examples_are_those_of_the_problem() -> None:
    bare = problem_of(Alpine(dim=2, negate=True))
    with pytest.raises(PlumblineError, match="'examples' needs a problem that has examples"):
        initial_design(InitialDesign(design="examples", size=3), bare, generator(0))
    having = replace(bare, examples=lambda n, stream: torch.rand(n, 2, generator=stream, dtype=torch.float64))
    X = initial_design(InitialDesign(design="examples", size=3), having, generator(0))
    assert torch.equal(X, torch.rand(3, 2, generator=generator(0), dtype=torch.float64))


def test_every_design_has_a_module_of_its_own() -> None:
    modules = [entry.module for entry in designs.entries().values()]
    assert len(set(modules)) == len(modules) == 10


def test_an_unknown_design_or_option_is_told_with_what_there_is(table: Problem) -> None:
    with pytest.raises(ValueError, match="unknown design 'sobl': did you mean 'sobol'"):
        InitialDesign(design="sobl", size=3)
    with pytest.raises(PlumblineError, match="design 'uniform': unknown field 'seed'"):
        initial_design(InitialDesign(design="uniform", size=3, options={"seed": 1}), table, generator(0))
