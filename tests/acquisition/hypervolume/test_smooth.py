"""The smooth hypervolume of draws against BoTorch's of the same draws, and its derivatives against autograd's."""

import pytest
import torch
from botorch.acquisition.logei import TAU_MAX
from botorch.acquisition.multi_objective import logei
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from plumbline.acquisition.hypervolume.improvement import free_cells, hypervolume_improvement
from plumbline.acquisition.hypervolume.smooth import AT_ONCE, OfOutcomes, cells_between, log_hypervolume_improvement

S = 16


def uniform(*shape: int, seed: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def botorchs(corners: tuple[Tensor, Tensor], f: Tensor, width: float) -> Tensor:
    """Return BoTorch's value of draws, `m x b x q x S`, over the same cells."""
    m = len(f)
    free = FastNondominatedPartitioning(ref_point=torch.zeros(m).double(), Y=torch.ones(1, m).double())
    reference = logei.qLogExpectedHypervolumeImprovement(
        torch.nn.Module(), torch.zeros(m).double(), free, tau_max=width
    )
    reference.cell_lower_bounds, reference.cell_upper_bounds = corners
    return reference._compute_log_qehvi(f.permute(3, 1, 2, 0))


def integrand(corners: tuple[Tensor, Tensor], width: float = TAU_MAX) -> OfOutcomes:
    return log_hypervolume_improvement(cells_between(*corners), width)


def agree(corners: tuple[Tensor, Tensor], f: Tensor, width: float) -> None:
    leaf = f.clone().requires_grad_()
    expected = botorchs(corners, leaf, width)
    (slope,) = torch.autograd.grad(expected.sum(), leaf)
    value, derivatives = integrand(corners, width)(f)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-11, atol=1e-10)
    torch.testing.assert_close(derivatives(), slope, rtol=1e-8, atol=1e-9 * (1 + float(slope.abs().max())))


@pytest.mark.slow
@settings(max_examples=60)
@given(
    n=st.integers(1, 12),
    m=st.sampled_from([2, 3]),
    q=st.integers(1, 4),
    fronts=st.booleans(),
    width=st.sampled_from([1e-2, 1e-3]),
    ahead=st.sampled_from([-300.0, -0.5, 0.0, 0.3, 200.0]),
    near=st.booleans(),
    seed=st.integers(0, 500),
)
def test_values_and_derivatives_are_botorchs(
    n: int, m: int, q: int, fronts: bool, width: float, ahead: float, near: bool, seed: int
) -> None:
    """Where `near`, outcomes are some on a corner of a cell, some beside one, and some of a batch nearly the same."""
    ref_point = torch.full((m,), 0.1, dtype=torch.float64)
    Y = uniform(S, n, m, seed=seed) if fronts else uniform(n, m, seed=seed)
    corners = free_cells(ref_point, Y)
    f = uniform(m, 3, q, S, seed=seed + 1) + ahead
    if near:
        f[:, 0, 0] = (Y[:, 0].mT if fronts else Y[:1].mT) + 1e-6 * uniform(m, S, seed=seed + 2)
        f[:, 1] = f[:, 1, :1] + 1e-9 * uniform(m, q, S, seed=seed + 3)
        # Where two of three are equal and least, a smooth minimum has a kink.
        f[:, 2, -1] = f[:, 2, 0] + (1e-9 if q > 2 else 0.0)
        f[0, 0, 0] = Y[..., 0, 0]
    agree(corners, f, width)


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("q", [1, 2, 3])
def test_nothing_observed_above_the_reference_point(m: int, q: int) -> None:
    """Then all that is above it is one cell, for one draw or for all."""
    ref_point = torch.full((m,), 2.0, dtype=torch.float64)
    f = uniform(m, 2, q, S, seed=1) * 3
    for Y in (uniform(5, m, seed=0), uniform(S, 5, m, seed=0)):
        corners = free_cells(ref_point, Y)
        assert corners[0].shape[-2] == 1
        agree(corners, f, TAU_MAX)


@pytest.mark.parametrize("m", [2, 3])
def test_a_draw_with_fewer_cells_has_empty_ones(m: int) -> None:
    Y = uniform(S, 8, m, seed=0)
    Y[0] = Y[0, :1]
    Y[1] = -1.0
    lower, upper = corners = free_cells(torch.zeros(m).double(), Y)
    assert (upper <= lower).any()
    agree(corners, uniform(m, 2, 2, S, seed=1), 1e-3)


@pytest.mark.parametrize("q", [1, 2, 3])
def test_it_is_nearly_the_mean_of_what_is_gained(q: int) -> None:
    """But for the smoothing, which is in the logarithms of sides."""
    corners = free_cells(torch.zeros(2).double(), 0.5 * uniform(6, 2, seed=0))
    f = uniform(2, 3, q, S, seed=1)
    gained = hypervolume_improvement(f.permute(1, 3, 2, 0), *corners).mean(-1)
    torch.testing.assert_close(integrand(corners, 1e-4)(f)[0], gained.log(), rtol=0.0, atol=0.01)


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("q", [1, 2, 3])
def test_finite_differences(m: int, q: int) -> None:
    of = integrand(free_cells(torch.zeros(m).double(), uniform(5, m, seed=0)))
    f = uniform(m, 2, q, 4, seed=1)
    direction, step = uniform(m, 2, q, 4, seed=2) - 0.5, 1e-6
    found = (of(f)[1]() * direction).sum((0, 2, 3))
    expected = (of(f + step * direction)[0] - of(f - step * direction)[0]) / (2 * step)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_more_than_is_worked_on_together() -> None:
    corners = free_cells(torch.zeros(3).double(), uniform(12, 3, seed=0))
    b = 2 + 3 * AT_ONCE // (3 * 2 * S * len(corners[0]))
    f = uniform(3, b, 2, S, seed=1)
    value, derivatives = integrand(corners)(f)
    alone = [integrand(corners)(f[:, i : i + 1]) for i in range(b)]
    torch.testing.assert_close(value, torch.cat([one for one, _ in alone]))
    torch.testing.assert_close(derivatives(), torch.cat([slopes() for _, slopes in alone], 1))


def test_a_hopeless_batch_still_knows_where_up_is() -> None:
    corners = free_cells(torch.zeros(3).double(), uniform(12, 3, seed=0))
    value, derivatives = integrand(corners)(uniform(3, 2, 2, S, seed=1) - 1e4)
    assert torch.isfinite(value).all()
    assert (derivatives().sum(-1) > 0).all()
