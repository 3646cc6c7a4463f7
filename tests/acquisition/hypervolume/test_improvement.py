"""Hypervolume improvements against BoTorch's hypervolume of the front with and without the batch."""

import pytest
import torch
from botorch.utils.multi_objective.hypervolume import Hypervolume
from botorch.utils.multi_objective.pareto import is_non_dominated
from torch import Tensor

from plumbline.acquisition.hypervolume.improvement import free_cells, hypervolume_improvement


def uniform(*shape: int, seed: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def volume(ref_point: Tensor, Y: Tensor) -> float:
    return Hypervolume(ref_point).compute(Y[is_non_dominated(Y)])


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("q", [1, 2, 3])
def test_improvement_is_the_difference_of_hypervolumes(m: int, q: int) -> None:
    """Points below the reference point and dominated ones are among them."""
    ref_point = torch.full((m,), 0.15, dtype=torch.float64)
    gains = []
    for seed in range(10):
        Y, batch = 0.8 * uniform(8, m, seed=seed), 1.1 * uniform(q, m, seed=100 + seed)
        expected = volume(ref_point, torch.cat([Y, batch])) - volume(ref_point, Y)
        found = hypervolume_improvement(batch, *free_cells(ref_point, Y)).item()
        assert found == pytest.approx(expected, abs=1e-10)
        gains.append(expected)
    assert max(gains) > 0.05


def test_many_batches_at_once() -> None:
    ref_point, Y, f = torch.zeros(2).double(), 0.7 * uniform(6, 2, seed=0), uniform(3, 4, 2, 2, seed=1)
    cells = free_cells(ref_point, Y)
    together = hypervolume_improvement(f, *cells)
    assert together.shape == (3, 4)
    for i in range(3):
        for j in range(4):
            torch.testing.assert_close(together[i, j], hypervolume_improvement(f[i, j], *cells))


@pytest.mark.parametrize("m", [2, 3])
def test_each_draw_has_a_front_of_its_own(m: int) -> None:
    """Fronts of different lengths: their cells are filled up with empty ones."""
    ref_point, Y = torch.zeros(m).double(), uniform(5, 7, m, seed=0)
    Y[2] = Y[2, :1]
    f = uniform(4, 5, 2, m, seed=1)
    lower, upper = free_cells(ref_point, Y)
    assert lower.shape == upper.shape
    assert lower.shape[0] == 5
    found = hypervolume_improvement(f, lower, upper)
    assert found.shape == (4, 5)
    for i in range(4):
        for k in range(5):
            expected = volume(ref_point, torch.cat([Y[k], f[i, k]])) - volume(ref_point, Y[k])
            assert found[i, k].item() == pytest.approx(expected, abs=1e-10)


def test_what_is_dominated_adds_nothing() -> None:
    ref_point, Y = torch.zeros(2).double(), torch.tensor([[1.0, 0.2], [0.5, 0.6]]).double()
    cells = free_cells(ref_point, Y)
    for batch in ([[0.4, 0.5]], [[0.9, 0.1], [0.5, 0.6]], [[-1.0, 5.0]], [[0.4, 0.5], [0.3, 0.2], [1.0, 0.2]]):
        assert hypervolume_improvement(torch.tensor(batch).double(), *cells).item() == pytest.approx(0.0, abs=1e-12)


def test_a_gain_by_hand() -> None:
    ref_point, Y = torch.zeros(2).double(), torch.tensor([[2.0, 1.0]]).double()
    cells = free_cells(ref_point, Y)
    assert hypervolume_improvement(torch.tensor([[1.0, 3.0]]).double(), *cells).item() == pytest.approx(2.0)
    twice = torch.tensor([[1.0, 3.0], [1.0, 3.0]]).double()
    assert hypervolume_improvement(twice, *cells).item() == pytest.approx(2.0)


def test_without_a_front_all_above_the_reference_point_is_gained() -> None:
    ref_point = torch.tensor([1.0, -1.0]).double()
    cells = free_cells(ref_point, torch.tensor([[0.0, 5.0]]).double())
    assert hypervolume_improvement(torch.tensor([[3.0, 1.0]]).double(), *cells).item() == pytest.approx(4.0)


def test_gradients_are_right() -> None:
    cells = free_cells(torch.zeros(2).double(), 0.6 * uniform(4, 2, seed=0))
    f = uniform(3, 2, 2, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda f: hypervolume_improvement(f, *cells), f)
