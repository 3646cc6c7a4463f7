"""Constrained optima of joint draws against grids."""

import pytest
import torch
from outcome_cases import made, somewhere
from torch import Generator, Tensor

from plumbline.acquisition.information.constrained_optima import constrained_peaks
from plumbline.core.outcomes import Role
from plumbline.models.gp.pathwise import Paths, draw_paths
from plumbline.spaces.box import Box
from plumbline.spaces.table import Table

BOX = torch.tensor([[-2.0, -2.0], [3.0, 3.0]]).double()


def drawn(roles: list[Role], seed: int, shift: float = 0.0, draws: int = 6) -> list[Paths]:
    generator = Generator().manual_seed(seed)
    return [draw_paths(process, draws, generator) for process in made(10, 2, seed, shift)[: len(roles)]]


def values(paths: list[Paths], X: Tensor) -> Tensor:
    """Return each draw's outcomes at its own point: `m x P`."""
    return torch.stack(
        [torch.stack([path.everywhere(x.unsqueeze(0))[i, 0] for i, x in enumerate(X)]) for path in paths]
    )


@pytest.mark.parametrize("seed", range(3))
def test_no_feasible_point_of_a_grid_is_above_it(seed: int) -> None:
    paths = drawn(["objective", "at_least_zero"], seed)
    found = constrained_peaks(paths, ["objective", "at_least_zero"], Box(BOX), 256, seed)
    axis = torch.linspace(-2, 3, 101, dtype=torch.float64)
    f, c = (path.everywhere(torch.cartesian_prod(axis, axis)) for path in paths)
    on_grid = f.where(c >= 0, -torch.inf).amax(-1)
    assert (found.f >= on_grid - 0.02 * f.std()).float().mean() > 0.8  # a climb may end in another valley
    there = values(paths, found.X)
    torch.testing.assert_close(there[0], found.f, rtol=1e-6, atol=1e-6)
    assert (there[1] >= -1e-4).all()
    assert ((BOX[0] <= found.X) & (BOX[1] >= found.X)).all()


def test_an_equality_holds_at_it() -> None:
    roles: list[Role] = ["objective", "at_least_zero", "zero"]
    paths = drawn(roles, 0)
    found = constrained_peaks(paths, roles, Box(BOX), 256, 0)
    there = values(paths, found.X)[:, torch.isfinite(found.f)]
    assert there.shape[1] >= 4
    assert (there[1] >= -1e-4).all()
    assert (there[2].abs() <= 1e-4).all()


@pytest.mark.parametrize("table", [True, False])
def test_nothing_feasible_is_no_number(table: bool) -> None:
    roles: list[Role] = ["objective", "at_least_zero"]
    paths = drawn(roles, 1, shift=-500.0)
    space = Table(BOX, somewhere(20, 2)) if table else Box(BOX)
    found = constrained_peaks(paths, roles, space, 64, 0)
    assert found.f.isnan().all()
    assert found.X.isnan().all()


def test_in_a_table_it_is_a_row_or_a_point_that_was_seen() -> None:
    roles: list[Role] = ["objective", "at_least_zero"]
    rows, paths = somewhere(30, 2, seed=5), drawn(roles, 2)
    found = constrained_peaks(paths, roles, Table(BOX, rows), 64, 0)
    known = torch.cat([rows, somewhere(10, 2, seed=2)])
    f, c = (path.everywhere(known) for path in paths)
    torch.testing.assert_close(found.f, f.where(c >= 0, -torch.inf).amax(-1))
    assert torch.cdist(found.X, known).amin(-1).max() < 1e-9
