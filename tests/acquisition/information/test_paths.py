"""Where draws of a function are greatest."""

import pytest
import torch
from processes import made, somewhere
from torch import Generator

from plumbline.acquisition.information.paths import PathAcquisition, degenerate, peaks
from plumbline.models.gp.pathwise import draw_paths
from plumbline.spaces.box import Box
from plumbline.spaces.search import SearchOptions
from plumbline.spaces.table import Table


def bounds(d: int) -> torch.Tensor:
    return torch.stack([-2 * torch.ones(d), 3 * torch.ones(d)]).double()


def test_a_path_is_a_utility_with_its_gradient() -> None:
    paths = draw_paths(made(8, 2, "matern52", 0), 1, Generator().manual_seed(0))
    utility = PathAcquisition(paths)
    X = somewhere(5, 1, 2)
    torch.testing.assert_close(utility(X), paths.everywhere(X.squeeze(-2))[0])
    assert torch.autograd.gradcheck(utility, (X.clone().requires_grad_(),), rtol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_no_point_of_a_grid_is_above_a_peak(seed: int) -> None:
    paths = draw_paths(made(10, 2, "matern52", seed), 6, Generator().manual_seed(seed))
    found = peaks(paths, Box(bounds(2)), SearchOptions(restarts=10, raw_samples=256), seed)
    axis = torch.linspace(-2, 3, 101, dtype=torch.float64)
    values = paths.everywhere(torch.cartesian_prod(axis, axis))
    assert found.X.shape == (6, 2)
    assert (found.f >= values.amax(-1) - 1e-3 * values.std()).all()
    at = torch.stack([paths.everywhere(point.unsqueeze(0))[i, 0] for i, point in enumerate(found.X)])
    torch.testing.assert_close(found.f, at)


def test_peaks_stay_in_the_box() -> None:
    region = torch.tensor([[0.0, 0.5], [0.4, 0.9]], dtype=torch.float64)
    paths = draw_paths(made(10, 2, "rbf", 1), 4, Generator().manual_seed(1))
    X = peaks(paths, Box(region), SearchOptions(restarts=2, raw_samples=8), 0).X
    assert (region[0] <= X).all()
    assert (region[1] >= X).all()


def test_of_a_table_a_peak_is_the_best_row() -> None:
    rows = somewhere(30, 2, seed=3)
    paths = draw_paths(made(10, 2, "rbf", 1), 5, Generator().manual_seed(1))
    found = peaks(paths, Table(bounds(2), rows), SearchOptions(), 0)
    values = paths.everywhere(rows)
    assert torch.equal(found.X, rows[values.argmax(-1)])
    assert torch.equal(found.f, values.amax(-1))


def test_draws_that_are_alike_or_no_numbers_say_nothing() -> None:
    draws = torch.rand(5, 3, generator=Generator().manual_seed(0), dtype=torch.float64)
    assert not degenerate(draws)
    assert degenerate(draws[:1].expand(5, 3))
    assert degenerate(draws[:1] + 1e-8 * draws)
    draws[2, 1] = torch.nan
    assert degenerate(draws)
