"""Values with what pulls gradients back through them: by hand where a function knows how, else automatically."""

from collections.abc import Callable

import torch
from torch import Tensor

VJP = Callable[[Tensor], tuple[Tensor, ...]]
"""Maps the gradient of a number in a function's value to the gradients in the function's inputs."""


def with_vjp(function: Callable[..., Tensor], *inputs: Tensor, record: bool = True) -> tuple[Tensor, VJP]:
    """Return the value of a function and what pulls gradients back to all of its inputs.

    Args:
        function: one with a method `with_vjp`, of the same inputs and with the same returns as this function, is
            differentiated by it; any other by automatic differentiation.
        inputs: of the function.
        record: what automatic differentiation needs, which takes time and memory; without it gradients are zero.
    """
    by_hand = getattr(function, "with_vjp", None)
    if by_hand is not None:
        return by_hand(*inputs)
    if not record:
        return function(*inputs), lambda grad_value: tuple(torch.zeros_like(one) for one in inputs)
    with torch.inference_mode(mode=False), torch.enable_grad():
        # Copies, since what was made in inference mode has no gradients.
        leaves = [one.detach().clone().requires_grad_() for one in inputs]
        value = function(*leaves)

    def vjp(grad_value: Tensor) -> tuple[Tensor, ...]:
        if not value.requires_grad:
            return tuple(torch.zeros_like(leaf) for leaf in leaves)
        with torch.inference_mode(mode=False):
            return torch.autograd.grad(value, leaves, grad_value.clone(), allow_unused=True, materialize_grads=True)

    return value.detach(), vjp
