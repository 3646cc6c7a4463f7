"""Utilities of known functions and their gradients."""

import pytest
import torch
from torch import Tensor

from plumbline.methods.conformal.expectation import Improvement, UpperBound


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_batchs_improvement_is_that_of_its_best_point() -> None:
    f = torch.tensor([[0.1], [0.9], [0.4]]).double()[None, None]
    assert Improvement(torch.tensor(0.5))(f, f).item() == pytest.approx(0.4)
    assert Improvement(torch.tensor(1.5))(f, f).item() == 0.0


def test_a_batchs_bound_is_that_of_its_best_point() -> None:
    f, mean = torch.tensor([[1.0], [-2.0]]).double()[None, None], torch.tensor([[0.5], [0.0]]).double()[None, None]
    assert UpperBound()(f, mean).item() == 2.0  # of 1.0 and 2.0


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize(
    "utility", [Improvement(torch.tensor(0.3).double()), Improvement(drawn(7, seed=5)), UpperBound()]
)
def test_gradients_are_those_of_automatic_differentiation(utility: Improvement | UpperBound, q: int) -> None:
    f, mean = drawn(4, 7, q, 1).requires_grad_(), drawn(4, 1, q, 1, seed=1).requires_grad_()
    weights = drawn(4, 7, seed=2)
    expected = torch.autograd.grad(
        (weights * utility(f, mean)).sum(), (f, mean), allow_unused=True, materialize_grads=True
    )
    with torch.no_grad():
        value, vjp = utility.with_vjp(f, mean)
        found = vjp(weights)
    assert torch.equal(value, utility(f, mean))
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-14, atol=1e-14)
