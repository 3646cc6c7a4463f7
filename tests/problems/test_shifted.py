import math

import pytest
import torch
from botorch.test_functions import Hartmann
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import MultivariateNormal

from plumbline.core.errors import PlumblineError
from plumbline.designs.base import initial_design
from plumbline.problems.build import build_problem
from plumbline.problems.shifted import Shift, diagonal_shift
from plumbline.registry.references import InitialDesign
from plumbline.spaces.box import uniform


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def effective_size(shift: Shift, n: int, seed: int) -> float:
    w = shift.log_ratio(shift.source(n, generator(seed))).exp()
    return (w.sum().square() / w.square().sum()).item()


def test_function_is_hartmann_where_botorch_has_it(context) -> None:
    problem = build_problem("hartmann3-shift", {}, context(0))
    X = torch.rand(50, 3, generator=generator(), dtype=torch.float64)
    torch.testing.assert_close(problem.function(X, noise=False), Hartmann(3, negate=True)(X), rtol=0, atol=0)


def test_nothing_outside_the_unit_cube_is_higher(context) -> None:
    problem = build_problem("hartmann3-shift", {}, context(0))
    X = uniform(problem.bounds, 50_000, generator())
    assert problem.function(X, noise=False).max() <= problem.optimum
    # Moving a point to the cube's nearest one never lowers it: each of the four hills has its top inside.
    assert (problem.function(X.clamp(0, 1), noise=False) >= problem.function(X, noise=False)).all()


@given(distance=st.floats(0, 0.5), seed=st.integers(0, 999))
@settings(max_examples=30)
def test_log_ratio_is_that_of_the_densities(distance: float, seed: int) -> None:
    shift = diagonal_shift(3, distance)
    covariance = 0.15**2 * torch.eye(3, dtype=torch.float64)
    p, q = (MultivariateNormal(mean, covariance) for mean in (shift.source_mean, shift.target_mean))
    X = 2 * torch.rand(7, 3, generator=generator(seed), dtype=torch.float64) - 0.5
    torch.testing.assert_close(shift.log_ratio(X), q.log_prob(X) - p.log_prob(X), rtol=1e-9, atol=1e-9)


def test_draws_have_their_means_and_spread() -> None:
    shift = diagonal_shift(3, 0.3)
    assert (shift.target_mean - shift.source_mean).norm().item() == pytest.approx(0.3)
    for draw, mean in ((shift.source, shift.source_mean), (shift.target, shift.target_mean)):
        X = draw(20_000, generator())
        assert X.shape == (20_000, 3)
        assert X.dtype == torch.float64
        torch.testing.assert_close(X.mean(dim=0), mean, rtol=0, atol=5 * 0.15 / math.sqrt(20_000))
        torch.testing.assert_close(X.T.cov(), 0.15**2 * torch.eye(3, dtype=torch.float64), rtol=0, atol=1.5e-3)
        assert torch.equal(X[:4], draw(20_000, generator())[:4])


def test_weights_turn_source_expectations_into_target_ones() -> None:
    shift = diagonal_shift(3, 0.15)
    X = shift.source(100_000, generator())
    w = shift.log_ratio(X).exp()
    assert w.mean().item() == pytest.approx(1.0, abs=0.03)
    torch.testing.assert_close((w.unsqueeze(-1) * X).mean(dim=0), shift.target_mean, rtol=0, atol=0.02)


def test_default_shift_is_real_but_overlaps(context) -> None:
    """With the oracle's weights 64 points are worth 15 to 30: with fewer nothing is learnt, with more nothing shown."""
    shift = build_problem("hartmann3-shift", {}, context(0)).shift
    sizes = [effective_size(shift, 64, seed) for seed in range(300)]
    assert 15 < sum(sizes) / len(sizes) < 30
    # What the options' docstring says, in the limit of many points.
    assert effective_size(shift, 400_000, 0) / 400_000 == pytest.approx(math.exp(-1), rel=0.05)


def test_no_shift_is_no_shift(context) -> None:
    shift = build_problem("hartmann3-shift", {"shift": 0.0}, context(0)).shift
    X = shift.source(5, generator(1))
    assert (shift.log_ratio(X) == 0).all()
    assert torch.equal(X, shift.target(5, generator(1)))


@pytest.mark.parametrize("distance", [0.0, 0.15, 0.5])
def test_draws_stay_within_the_bounds(distance: float, context) -> None:
    problem = build_problem("hartmann3-shift", {"shift": distance}, context(0))
    for draw in (problem.shift.source, problem.shift.target):
        X = draw(100_000, generator())
        assert torch.isfinite(problem.function(X, noise=False)).all()
    margin = torch.minimum(problem.shift.source_mean - problem.bounds[0], problem.bounds[1] - problem.shift.target_mean)
    assert (margin > 5.7 * problem.shift.sd).all()


def test_noise_is_that_of_the_paper_unless_told_otherwise(context) -> None:
    assert build_problem("hartmann3-shift", {}, context(0)).outcomes[0].noise == 0.2236
    assert build_problem("hartmann3-shift", {"noise_std": 0.0}, context(0)).outcomes[0].noise == 0.0
    scaled = build_problem("hartmann3-shift", {"noise_scale": 0.1}, context(0))
    assert scaled.outcomes[0].noise not in (0.0, 0.05)


@pytest.mark.parametrize("distance", [-0.1, 0.6])
def test_a_shift_out_of_the_box_is_refused(distance: float, context) -> None:
    with pytest.raises(PlumblineError, match="shift"):
        build_problem("hartmann3-shift", {"shift": distance}, context(0))


def test_design_source_draws_from_the_training_distribution(context) -> None:
    problem = build_problem("hartmann3-shift", {}, context(0))
    X = initial_design(InitialDesign(design="source", size=9), problem, generator(4))
    assert torch.equal(X, problem.shift.source(9, generator(4)))


@pytest.mark.parametrize("name", ["branin", "molecules"])
def test_design_source_needs_a_shift(name: str, context) -> None:
    options = {"dataset": "small-molecules", "target": "qed", "pool": 30} if name == "molecules" else {}
    with pytest.raises(PlumblineError, match="'source' needs a problem with covariate shift"):
        initial_design(InitialDesign(design="source", size=3), build_problem(name, options, context(0)), generator())
