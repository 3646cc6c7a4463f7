"""Pull-backs: automatic ones, and those that functions bring along."""

import torch
from torch import Tensor

from plumbline.core.vjp import VJP, with_vjp

X = torch.tensor([0.3, -1.2, 2.0], dtype=torch.float64)
Y = torch.tensor([1.0, 0.5, -0.25], dtype=torch.float64)


def test_gradients_of_any_function_are_pulled_back_to_all_inputs() -> None:
    with torch.no_grad():
        value, vjp = with_vjp(lambda x, y: x.sin() * y.square(), X, Y)
        to_x, to_y = vjp(torch.tensor([1.0, 2.0, 3.0]).double())
    torch.testing.assert_close(value, X.sin() * Y.square())
    torch.testing.assert_close(to_x, torch.tensor([1.0, 2.0, 3.0]) * X.cos() * Y.square())
    torch.testing.assert_close(to_y, torch.tensor([1.0, 2.0, 3.0]) * X.sin() * 2 * Y)
    assert not value.requires_grad


def test_it_works_in_inference_mode_too() -> None:
    with torch.inference_mode():
        inner = 2 * X
        _, vjp = with_vjp(torch.square, inner)
        (gradient,) = vjp(torch.ones(3).double() * 1)
    torch.testing.assert_close(gradient.clone(), 4 * X)


def test_an_input_that_does_not_matter_has_no_gradient() -> None:
    for function in (lambda x, y: x.square(), lambda x, y: torch.ones(3).double()):
        _, vjp = with_vjp(function, X, Y)
        assert torch.equal(vjp(torch.ones(3).double())[1], torch.zeros(3).double())


def test_nothing_is_recorded_unless_it_is_wanted() -> None:
    seen = []
    with torch.no_grad():
        value, _ = with_vjp(lambda x: (seen.append(x.requires_grad), x.square())[1], X, record=False)
    assert seen == [False]
    torch.testing.assert_close(value, X.square())


def test_a_function_that_knows_its_gradient_is_asked_for_it() -> None:
    class Doubled:
        def __call__(self, x: Tensor) -> Tensor:
            raise AssertionError("its own rule gives the value, too")

        def with_vjp(self, x: Tensor) -> tuple[Tensor, VJP]:
            return 2 * x, lambda grad_value: (2 * grad_value,)

    value, vjp = with_vjp(Doubled(), X)
    assert torch.equal(value, 2 * X)
    assert torch.equal(vjp(Y)[0], 2 * Y)
