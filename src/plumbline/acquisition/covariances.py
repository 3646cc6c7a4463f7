"""Gradients of functions of prior covariances."""

from collections.abc import Callable

import torch
from torch import Tensor

from plumbline.models.gp.process import GP


def through_covariances(
    process: GP, U: Tensor, function: Callable[[Tensor], Tensor], X: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the values, `b`, and gradients, `b x d`, of a function of the prior covariances of points with others.

    Autograd differentiates the function; the covariances have a hand-written vector-Jacobian product.

    Args:
        process: GP with the prior.
        U: the other points, `k x d` in the unit cube.
        function: maps covariances, `b x k`, to values, `b`.
        X: `b x d`, in the problem's bounds.
    """
    K, vjp = process.prior_with_vjp(process.standardisation.inputs(X).unsqueeze(0), U.unsqueeze(0))
    with torch.enable_grad():
        value = function(K.requires_grad_().squeeze(0))
        (grad_K,) = torch.autograd.grad(value.sum(), K)
    return value.detach(), vjp(grad_K).squeeze(0) / process.standardisation.width
