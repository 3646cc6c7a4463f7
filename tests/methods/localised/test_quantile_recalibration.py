"""Reweighted Gaussians against draws, integrals, and the recursion's own promise."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from torch import Tensor, tensor

from plumbline.methods.localised.quantile_recalibration import (
    RecalibratedPredictive,
    ReweightedGaussian,
    interpolated,
    levels,
    monotone_with_vjp,
    padded,
)
from plumbline.methods.localised.thresholds import OnlineOptions, OnlineThreshold


def monotone(R: Tensor) -> Tensor:
    return torch.from_numpy(monotone_with_vjp(R.numpy())[0])


TARGETS = levels(3)
R = tensor([[0.05, 0.3, 0.9], [0.4, 0.5, 0.55]], dtype=torch.float64)
CENTRE, SCALE = tensor([1.0, -2.0], dtype=torch.float64), tensor([2.0, 0.5], dtype=torch.float64)
OF = ReweightedGaussian(CENTRE, SCALE, TARGETS, monotone(R))


def draws(n: int = 400_000) -> Tensor:
    u = torch.rand(n, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return RecalibratedPredictive(OF).quantile(u)


def test_gradients_of_levels_in_order() -> None:
    """Against differences; raw levels outside [0, 1] are constant."""
    raw = np.array([[0.5, 0.2, 0.9], [-0.1, 1.3, 0.4]])
    grad_levels = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = monotone_with_vjp(raw)[1](grad_levels)
    for at in np.ndindex(raw.shape):
        step = np.zeros_like(raw)
        step[at] = 1e-6
        ends = [(grad_levels * monotone_with_vjp(raw + side * step)[0]).sum() for side in (1, -1)]
        assert found[at] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-7)


def test_levels_are_inside_and_symmetric() -> None:
    assert levels(3).tolist() == [0.25, 0.5, 0.75]


def test_expected_improvement_is_that_of_draws() -> None:
    for best in (-3.0, 0.0, 1.5, 6.0):
        gains = (draws() - best).clamp_min(0.0)
        exact = OF.expected_improvement(tensor(best, dtype=torch.float64))
        error = gains.std(dim=0) / len(gains) ** 0.5
        assert ((gains.mean(dim=0) - exact).abs() <= 4 * error + 1e-12).all()


def test_moments_are_those_of_draws() -> None:
    mean, sd = OF.moments()
    assert (draws().mean(dim=0) - mean).abs().max() < 4 * sd.max() / 400_000**0.5
    assert (draws().std(dim=0) / sd - 1).abs().max() < 0.01


def test_at_its_targets_it_is_the_model() -> None:
    plain = ReweightedGaussian(CENTRE, SCALE, TARGETS, TARGETS.expand(2, -1))
    predictive = RecalibratedPredictive(plain)
    y = tensor([0.3, -2.2], dtype=torch.float64)
    z = ((y - CENTRE) / SCALE).numpy()
    assert predictive.cdf(y).numpy() == pytest.approx(norm.cdf(z))
    assert predictive.log_prob(y).numpy() == pytest.approx(norm.logpdf(z) - SCALE.log().numpy())
    torch.testing.assert_close(torch.stack(plain.moments()), torch.stack([CENTRE, SCALE]))
    best = tensor(0.5, dtype=torch.float64)
    t = (CENTRE - best) / SCALE
    expected = SCALE * (t * torch.special.ndtr(t) + torch.from_numpy(norm.pdf(t.numpy())))
    torch.testing.assert_close(plain.expected_improvement(best), expected)


def test_quantiles_are_found_at_the_recalibrated_levels() -> None:
    """Eq. 20, and the cdf is their inverse."""
    predictive = RecalibratedPredictive(OF)
    for i, target in enumerate(TARGETS):
        q = predictive.quantile(target.expand(2))
        expected = CENTRE + SCALE * torch.special.ndtri(monotone(R)[:, i])
        torch.testing.assert_close(q, expected)
        torch.testing.assert_close(predictive.cdf(q), target.expand(2))


def test_log_density_is_the_slope_of_the_cdf() -> None:
    predictive, step = RecalibratedPredictive(OF), 1e-6
    for y in (tensor([-1.3, -2.4], dtype=torch.float64), tensor([2.0, -1.9], dtype=torch.float64)):
        slope = (predictive.cdf(y + step) - predictive.cdf(y - step)) / (2 * step)
        torch.testing.assert_close(predictive.log_prob(y).exp(), slope, rtol=1e-4, atol=1e-8)


@given(st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=8))
def test_levels_that_cross_are_put_in_order(values: list[float]) -> None:
    ordered = monotone(tensor(values, dtype=torch.float64))
    full = padded(ordered)
    assert (full.diff() > 5e-7).all()
    assert (ordered - tensor(values, dtype=torch.float64).clamp(0, 1).sort().values).abs().max() < 1e-5


def test_levels_that_fall_together_keep_their_mass() -> None:
    """Two levels at the same place: what is between them becomes a point mass there."""
    same = ReweightedGaussian(CENTRE[:1], SCALE[:1], levels(2), monotone(tensor([[0.5, 0.5]], dtype=torch.float64)))
    gain = same.expected_improvement(tensor(0.0, dtype=torch.float64))
    below = (draw_half(lower=True)).clamp_min(0.0).mean()
    above = (draw_half(lower=False)).clamp_min(0.0).mean()
    assert gain.item() == pytest.approx((below + 1.0 + above).item() / 3, rel=5e-3)


def draw_half(*, lower: bool) -> Tensor:
    u = torch.rand(400_000, generator=torch.Generator().manual_seed(1), dtype=torch.float64) / 2
    return 1.0 + 2.0 * torch.special.ndtri(u if lower else u + 0.5)


def test_gradients_are_those_of_finite_differences() -> None:
    def gain(centre: Tensor, scale: Tensor, recalibrated: Tensor) -> Tensor:
        return ReweightedGaussian(centre, scale, TARGETS, recalibrated).expected_improvement(
            tensor(0.2, dtype=torch.float64)
        )

    inputs = [part.clone().requires_grad_() for part in (CENTRE, SCALE, monotone(R))]
    assert torch.autograd.gradcheck(gain, inputs)


@settings(max_examples=30)
@given(st.floats(0.0, 1.0))
def test_interpolation_is_numpys(x: float) -> None:
    grid, values = padded(R), padded(TARGETS).expand(2, -1)
    ours = interpolated(tensor([x, x], dtype=torch.float64), grid, values)
    expected = [np.interp(x, grid[i].numpy(), values[i].numpy()) for i in range(2)]
    assert ours.tolist() == pytest.approx(expected)


@pytest.mark.slow
def test_quantiles_come_true_in_the_long_run() -> None:
    """Eq. 16, from a forecaster that is biased and far too sure."""
    generator = torch.Generator().manual_seed(0)
    thresholds = OnlineThreshold.start(OnlineOptions(eta0=0.05, decay=0.0), TARGETS, 1)
    x, rounds, below = torch.zeros(1, 1, dtype=torch.float64), 3_000, torch.zeros(3, dtype=torch.float64)
    for _ in range(rounds):
        y = 0.7 + 2.0 * torch.randn(1, generator=generator, dtype=torch.float64)
        model = ReweightedGaussian(torch.zeros(1), torch.ones(1), TARGETS, monotone(thresholds.unclipped(x)))
        events = (y <= RecalibratedPredictive(model).quantile(TARGETS.unsqueeze(-1)).squeeze(-1)).double()
        below += events
        thresholds = thresholds.update(x[0], events)
    assert (below / rounds).tolist() == pytest.approx(TARGETS.tolist(), abs=0.02)


@settings(max_examples=60)
@given(st.lists(st.floats(0.02, 0.98), min_size=1, max_size=6), st.floats(-3, 3), st.floats(0.2, 3), st.floats(-4, 4))
def test_slopes_of_expected_improvement(raw: list[float], centre: float, scale: float, best: float) -> None:
    """Against automatic differentiation of the value, level by level."""
    levels_in_order = monotone(tensor([raw], dtype=torch.float64))
    inputs = (tensor([centre], dtype=torch.float64), tensor([scale], dtype=torch.float64), levels_in_order)
    leaves = [one.clone().requires_grad_() for one in inputs]
    of = ReweightedGaussian(leaves[0], leaves[1], levels(len(raw)), leaves[2])
    value, *slopes = of.expected_improvement_with_slopes(tensor(best, dtype=torch.float64))
    expected = torch.autograd.grad(value.sum(), leaves)
    for found, slope in zip(slopes, expected, strict=True):
        # Levels a hair apart have slices with densities of a million.
        torch.testing.assert_close(found.detach(), slope, rtol=1e-7, atol=1e-7 * float(slope.abs().max()) + 1e-10)


def test_of_arrays_is_as_of_tensors() -> None:
    parts, best = (CENTRE, SCALE, TARGETS, monotone(R)), 0.2
    tensors, arrays = ReweightedGaussian(*parts), ReweightedGaussian(*(part.numpy() for part in parts))
    of_tensors = tensors.expected_improvement_with_slopes(tensor(best, dtype=torch.float64)), tensors.moments()
    of_arrays = arrays.expected_improvement_with_slopes(np.array(best)), arrays.moments()
    for one, other in zip(of_tensors, of_arrays, strict=True):
        for expected, found in zip(one, other, strict=True):
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-12, atol=1e-12)
