"""Standard Gaussian integrals against scipy, derivatives and quadrature."""

from collections.abc import Callable

import pytest
import torch
from scipy.stats import norm

from plumbline.forecasts import gaussian


def test_the_left_tail_keeps_its_digits() -> None:
    """Labels outside a set of threshold 1e-6 begin five standard deviations out."""
    t = torch.linspace(-12, 8, 81, dtype=torch.float64)
    torch.testing.assert_close(gaussian.cdf(t), torch.from_numpy(norm.cdf(t)), rtol=1e-12, atol=0.0)


@pytest.mark.parametrize(
    ("antiderivative", "function"), [(gaussian.ramp, gaussian.cdf), (gaussian.integrated_ramp, gaussian.ramp)]
)
def test_antiderivatives_are_such(antiderivative: Callable, function: Callable) -> None:
    t = torch.linspace(-6, 6, 41, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(antiderivative(t).sum(), t)
    torch.testing.assert_close(slope, function(t.detach()))


@pytest.mark.parametrize(
    ("mean", "function"),
    [
        (gaussian.mean_density, gaussian.density),
        (gaussian.mean_cdf, gaussian.cdf),
        (gaussian.mean_ramp, gaussian.ramp),
    ],
)
@pytest.mark.parametrize("reach", [0.0, 1e-9, 0.0099, 0.0101, 1.0, 6.0])
def test_means_over_an_interval(mean: Callable, function: Callable, reach: float) -> None:
    """Against quadrature, on both sides of where the series takes over."""
    t, r = torch.linspace(-5, 5, 21, dtype=torch.float64), torch.tensor(reach, dtype=torch.float64)
    points, weights = torch.from_numpy(gaussian.NODES), torch.from_numpy(gaussian.WEIGHTS)
    nodes = t.unsqueeze(-1) + r * points
    torch.testing.assert_close(mean(t, r), (weights * function(nodes)).sum(dim=-1) / 2, rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize(
    "function", [gaussian.mean_slope, gaussian.mean_density, gaussian.mean_cdf, gaussian.mean_ramp]
)
@pytest.mark.parametrize("reach", [0.0, 0.0099, 1.0])
def test_of_arrays_is_as_of_tensors(function: Callable, reach: float) -> None:
    t, r = torch.linspace(-5, 5, 21, dtype=torch.float64), torch.full((21,), reach, dtype=torch.float64)
    found = torch.from_numpy(function(t.numpy(), r.numpy()))
    torch.testing.assert_close(found, function(t, r), rtol=1e-13, atol=1e-15)


def test_the_ramp_is_never_negative() -> None:
    """Not even where its terms are subnormal."""
    t = torch.linspace(-45, -30, 20001, dtype=torch.float64)
    assert (gaussian.ramp(t) >= 0).all()
    assert (gaussian.ramp(t.numpy()) >= 0).all()
    assert (gaussian.ramp(t[t > -37]) > 0).all()
