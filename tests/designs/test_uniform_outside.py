"""Uniform designs outside of a region."""

import pytest
import torch
from design_cases import BOUNDS, generator

from plumbline.core.errors import PlumblineError
from plumbline.designs.base import initial_design
from plumbline.designs.uniform_outside import uniform_outside
from plumbline.problems.build import problem_of
from plumbline.problems.synthetic import Alpine
from plumbline.registry.references import InitialDesign
from plumbline.spaces.box import uniform

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
