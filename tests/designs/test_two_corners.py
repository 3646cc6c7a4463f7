"""Designs in two corners."""

import numpy as np
import pytest
import torch
from design_cases import BOUNDS, generator
from scipy.stats import chi2, hypergeom

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


@pytest.mark.parametrize("n", [1, 2, 5])
def test_points_are_drawn_from_as_many_in_each_corner_without_replacement(n: int) -> None:
    stream, draws = generator(2), 4000
    designs = [two_corners(BOUNDS, n, stream)[:, 0] > BOUNDS[:, 0].mean() for _ in range(draws)]
    upper = torch.stack(designs).double()
    found = torch.bincount(upper.sum(dim=1).long(), minlength=n + 1)
    expected = hypergeom(2 * n, n, n).pmf(np.arange(n + 1)) * draws
    # Fair coins would have 125 designs of five in each corner alone; here there are 16.
    assert ((found.numpy() - expected) ** 2 / expected).sum() < chi2(n).isf(1e-4)
    # The order tells nothing: each place is in either corner as often.
    assert upper.mean(dim=0).tolist() == pytest.approx([0.5] * n, abs=0.035)


def test_a_design_of_another_length_is_another() -> None:
    """Two points share a corner with a probability that depends on the length, and so cannot be those of both."""
    share = {}
    for n in (2, 9):
        stream = generator(3)
        firsts = torch.stack([two_corners(BOUNDS, n, stream)[:2, 0] > BOUNDS[:, 0].mean() for _ in range(4000)])
        share[n] = (firsts[:, 0] == firsts[:, 1]).double().mean().item()
    assert share == pytest.approx({n: (n - 1) / (2 * n - 1) for n in (2, 9)}, abs=0.035)
