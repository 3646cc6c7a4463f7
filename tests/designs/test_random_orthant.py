"""Designs in one orthant."""

from design_cases import BOUNDS, generator

from plumbline.designs.random_orthant import random_orthant


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
