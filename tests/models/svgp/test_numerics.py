"""Elementwise functions: what they are, and that every digit is the same wherever a number is."""

from collections.abc import Callable

import pytest
import torch

from plumbline.models.svgp.numerics import FAR, log_softplus, power, sigmoid, softplus

X = torch.linspace(-60, 60, 241, dtype=torch.float64)
FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softplus": softplus,
    "sigmoid": sigmoid,
    "log-softplus": lambda x: log_softplus(x)[0],
    "slope": lambda x: log_softplus(x)[1],
    "power": lambda x: power(0.9, x),
}


def test_they_are_what_they_are_called() -> None:
    torch.testing.assert_close(softplus(X), torch.logaddexp(X, torch.zeros_like(X)), rtol=1e-14, atol=0)
    torch.testing.assert_close(sigmoid(X), torch.sigmoid(X), rtol=1e-14, atol=0)
    torch.testing.assert_close(power(0.9, X), torch.pow(0.9, X), rtol=1e-13, atol=0)


def test_log_softplus_and_its_slope() -> None:
    at = X[X > -FAR].clone().requires_grad_()
    expected = torch.logaddexp(at, torch.zeros_like(at)).log()
    (slope,) = torch.autograd.grad(expected.sum(), at)
    value, found = log_softplus(at.detach())
    torch.testing.assert_close(value, expected.detach(), rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(found, slope, rtol=1e-13, atol=1e-14)


def test_log_softplus_far_out() -> None:
    value, slope = log_softplus(torch.tensor([-1e300, -1e6, 1e6, 1e300, torch.nan], dtype=torch.float64))
    assert value[:4].tolist() == pytest.approx([-1e300, -1e6, 13.815510557964274, 690.7755278982137])
    assert slope[:4].tolist() == pytest.approx([1.0, 1.0, 1e-6, 1e-300])
    assert torch.isnan(value[4])
    assert torch.isnan(slope[4])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_digit_is_the_same_in_any_tensor(name: str) -> None:
    whole = FUNCTIONS[name](X)
    for length in range(1, 20):
        for first in range(0, 200, 7):
            part = slice(first, first + length)
            assert torch.equal(FUNCTIONS[name](X[part].clone()), whole[part])
            assert torch.equal(FUNCTIONS[name](X[part].repeat_interleave(3)[::3]), whole[part])
