"""Exact sets against a fine grid."""

import math
from itertools import pairwise

import pytest
import torch
from gp_cases import cube, made_process, random_weights
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.methods.conformal.augmented import augment
from plumbline.methods.conformal.masses import conformity_mass
from plumbline.methods.conformal.scores import quadratics
from plumbline.methods.conformal.sets import ConformalSets, exact_sets


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(2, 20), st.floats(1e-4, 0.4), st.floats(0.05, 0.6), st.integers(0, 100), st.booleans())
def test_exact_sets_agree_with_a_fine_grid(n: int, noise: float, alpha: float, seed: int, even: bool) -> None:
    coefficients = quadratics([augment(made_process(n, noise, seed), cube(3, seed=seed + 1))])
    weights = random_weights(3, 1, n, seed)
    if even:
        weights = torch.full_like(weights, 1 / (n + 1))
    sets = exact_sets(coefficients, weights, alpha)
    grid = torch.linspace(-20, 20, 100_001, dtype=torch.float64).expand(3, -1)
    inside = conformity_mass(coefficients, weights, grid[..., None, None]).squeeze(1) > alpha
    cell = 40 / 100_000
    clipped = ConformalSets(sets.edges.clamp(-20, 20), sets.inside)
    assert (clipped.width() - inside.double().mean(dim=-1) * 40).abs().max() <= cell * (2 * n + 2)


def test_below_one_in_n_plus_one_the_set_is_the_whole_line() -> None:
    n = 8
    coefficients = quadratics([augment(made_process(n), cube(1))])
    weights = torch.full((1, 1, n + 1), 1 / (n + 1), dtype=torch.float64)
    sets = exact_sets(coefficients, weights, alpha=0.9 / (n + 1))
    assert math.isinf(sets.width().item())
    assert sets.intervals() == [[(-math.inf, math.inf)]]


def test_all_weight_on_the_label_itself_makes_the_set_the_whole_line() -> None:
    coefficients = quadratics([augment(made_process(8), cube(1))])
    weights = torch.zeros(1, 1, 9, dtype=torch.float64)
    weights[..., -1] = 1.0
    assert exact_sets(coefficients, weights, 0.99).intervals() == [[(-math.inf, math.inf)]]


def test_intervals_are_apart_and_as_long_as_the_width() -> None:
    coefficients = quadratics([augment(made_process(20, 0.3, seed), cube(1)) for seed in [3]])
    sets = exact_sets(coefficients, random_weights(1, 1, 20, 1), 0.3)
    (intervals,) = sets.intervals()
    assert all(a[1] < b[0] for a, b in pairwise(intervals))
    torch.testing.assert_close(sum(high - low for low, high in intervals), sets.width().item())
