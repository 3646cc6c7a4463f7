"""Cells of many fronts at once against BoTorch's of each."""

import pytest
import torch
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from plumbline.acquisition.hypervolume.fronts import cells_of_fronts


def botorchs(ref_point: Tensor, Y: Tensor) -> Tensor:
    return FastNondominatedPartitioning(ref_point=ref_point, Y=Y).get_hypercell_bounds()


@pytest.mark.slow
@settings(max_examples=40)
@given(
    n=st.integers(1, 12),
    m=st.sampled_from([3, 4]),
    levels=st.sampled_from([3, 5, 10**6]),
    height=st.sampled_from([0.0, 0.5, 2.0]),
    seed=st.integers(0, 500),
)
def test_each_front_is_cut_as_by_botorch(n: int, m: int, levels: int, height: float, seed: int) -> None:
    """To the last digit and in the same order, also where few levels make points share coordinates."""
    generator = torch.Generator().manual_seed(seed)
    Y = torch.randint(levels, (5, n, m), generator=generator).double() / levels
    ref_point = torch.full((m,), height, dtype=torch.float64)
    lower, upper = cells_of_fronts(ref_point, Y)
    for own_lower, own_upper, front in zip(lower, upper, Y, strict=True):
        expected = botorchs(ref_point, front)
        c = expected.shape[1]
        assert torch.equal(torch.stack([own_lower[:c], own_upper[:c]]), expected)
        assert (own_lower[c:] == own_upper[c:]).all()


@pytest.mark.parametrize("m", [3, 4])
def test_all_above_the_reference_point_is_free_where_there_is_no_front(m: int) -> None:
    ref_point = torch.ones(m).double()
    lower, upper = cells_of_fronts(ref_point, torch.zeros(2, 3, m).double())
    assert torch.equal(lower, ref_point.expand(2, 1, m))
    assert torch.isinf(upper).all()
