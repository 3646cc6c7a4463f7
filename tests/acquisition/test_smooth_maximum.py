"""Smooth maxima and minima against BoTorch's, their derivatives against autograd's."""

import pytest
import torch
from botorch.utils.safe_math import fatmin, fatminimum, log_fatplus
from torch import Tensor

from plumbline.acquisition.smooth_maximum import NEAR, lesser, log_fat_relu, smooth_least

WIDTH = 1e-2


def leaf(values: Tensor) -> Tensor:
    return values.double().requires_grad_()


def uniform(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_logarithm_of_an_improvement_is_botorchs_near_zero_and_far() -> None:
    near, far = torch.linspace(-2 * NEAR, 2 * NEAR, 999), torch.tensor([1e2, 1e4, 1e9, 1e12])
    u = leaf(torch.cat([near, torch.zeros(1), far, -far]).view(3, -1))
    expected = log_fatplus(u)
    (slope,) = torch.autograd.grad(expected.sum(), u)
    value, derivative = log_fat_relu(u.detach().clone())
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(derivative(), slope, rtol=1e-8, atol=1e-300)


@pytest.mark.parametrize("i", [1, 2, 3, 5])
def test_smooth_minima_are_botorchs(i: int) -> None:
    x = leaf(uniform(4, i, 7) * 0.1)
    expected = fatmin(x, dim=1, tau=WIDTH)
    (slope,) = torch.autograd.grad(expected.sum(), x)
    value, derivatives = smooth_least(x.detach(), WIDTH)
    shares = derivatives()
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(shares, slope)
    torch.testing.assert_close(shares.sum(1), torch.ones(4, 7).double())


def test_the_lesser_of_two_is_a_smooth_minimum_of_two() -> None:
    """The same, near and far, and where both are one number."""
    x, y = leaf(uniform(50) * 0.1), uniform(50, seed=1) * 0.1
    with torch.no_grad():
        x[0], x[1] = y[0], 1e3
    expected = fatminimum(x, y, tau=WIDTH)
    (slope,) = torch.autograd.grad(expected.sum(), x)
    least, total, share = lesser(x.detach(), y, WIDTH)
    torch.testing.assert_close(least - WIDTH * total.log(), expected.detach())
    torch.testing.assert_close(share(), slope)
