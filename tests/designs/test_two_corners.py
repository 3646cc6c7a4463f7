"""Designs in two corners."""

import pytest
import torch
from design_cases import BOUNDS, generator

from plumbline.designs.two_corners import two_corners


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
