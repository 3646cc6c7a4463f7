"""Values of functions with their vector-Jacobian products: hand-written where there is one, else automatic."""

from collections.abc import Callable

import torch
from torch import Tensor

VJP = Callable[[Tensor], tuple[Tensor, ...]]
"""Vector-Jacobian product: maps the gradient with respect to a function's value to those with respect to its inputs."""


def with_vjp(function: Callable[..., Tensor], *inputs: Tensor, record: bool = True) -> tuple[Tensor, VJP]:
    """Return the value of a function and its vector-Jacobian product in all of its inputs.

    Args:
        function: its method `with_vjp` is used if it has one, which takes `inputs` and returns the same pair; any other
            function is differentiated automatically.
        inputs: inputs of the function.
        record: whether automatic differentiation records a graph, which takes time and memory; else gradients are zero.
    """
    by_hand = getattr(function, "with_vjp", None)
    if by_hand is not None:
        return by_hand(*inputs)
    if not record:
        return function(*inputs), lambda grad_value: tuple(torch.zeros_like(one) for one in inputs)
    with torch.inference_mode(mode=False), torch.enable_grad():
        # Copies, since tensors made in inference mode cannot require gradients.
        leaves = [one.detach().clone().requires_grad_() for one in inputs]
        value = function(*leaves)

    def vjp(grad_value: Tensor) -> tuple[Tensor, ...]:
        if not value.requires_grad:
            return tuple(torch.zeros_like(leaf) for leaf in leaves)
        with torch.inference_mode(mode=False):
            return torch.autograd.grad(value, leaves, grad_value.clone(), allow_unused=True, materialize_grads=True)

    return value.detach(), vjp
