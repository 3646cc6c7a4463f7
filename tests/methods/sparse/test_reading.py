"""Readings of an imagined observation: what they draw, what they condition on, and where they agree."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from point_posteriors import READINGS, normal, uniform

from plumbline.methods.sparse.reading import Reading, variances, variances_vjp


def share(variance: torch.Tensor, noise: torch.Tensor, reading: Reading) -> torch.Tensor:
    """Return by how much a mean moves per covariance and standard normal draw."""
    drawn, conditioned = variances(variance, noise, reading)
    return drawn.sqrt() / conditioned


@given(st.floats(1e-6, 10), st.floats(1e-6, 10))
def test_shares_in_closed_form(variance: float, noise: float) -> None:
    v, n = torch.tensor([variance, noise], dtype=torch.float64)
    assert share(v, n, "noise-free").item() == pytest.approx(variance**-0.5, rel=1e-12)
    assert share(v, n, "noisy").item() == pytest.approx((variance + noise) ** -0.5, rel=1e-12)
    assert share(v, n, "shrunk-twice").item() == pytest.approx(variance**0.5 / (variance + noise), rel=1e-12)
    assert share(v, n, "shrunk-twice") < share(v, n, "noisy") < share(v, n, "noise-free")


def test_readings_agree_without_noise() -> None:
    v, n = uniform(5) + 0.1, torch.full((5,), 1e-14).double()
    for reading in READINGS:
        torch.testing.assert_close(share(v, n, reading), v.rsqrt(), rtol=1e-10, atol=0.0)


@pytest.mark.parametrize("reading", READINGS)
def test_the_mean_moves_by_what_exact_conditioning_explains(reading: Reading) -> None:
    """By the law of total variance, where a reading draws what it conditions on; otherwise by less."""
    root, noise = normal(4, 4), torch.tensor(0.3, dtype=torch.float64)
    covariance = root @ root.mT
    moved = covariance[:, 0] * share(covariance[0, 0], noise, reading)
    if reading == "noise-free":
        left = torch.zeros(4, 4).double()  # f at the first point is known; of the others the Schur complement is left
        left[1:, 1:] = covariance.inverse()[1:, 1:].inverse()
    else:
        precision = covariance.inverse()
        precision[0, 0] += 1 / noise
        left = precision.inverse()
    explained = covariance - left
    if reading == "shrunk-twice":
        assert (moved.square() < explained.diagonal()).all()
    else:
        torch.testing.assert_close(torch.outer(moved, moved), explained, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("reading", READINGS)
def test_gradients_against_autograd(reading: Reading) -> None:
    v, n = (uniform(5, seed=1) + 0.1).requires_grad_(), uniform(5, seed=2).requires_grad_()
    weights = normal(2, 5)
    drawn, conditioned = variances(v, n, reading)
    value = (weights[0] * drawn + weights[1] * conditioned).sum()
    expected = torch.autograd.grad(value, (v, n), allow_unused=True, materialize_grads=True)
    for own, other in zip(variances_vjp(weights[0], weights[1], reading), expected, strict=True):
        torch.testing.assert_close(own, other)
