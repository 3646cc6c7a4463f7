"""Utilities that come with their gradient."""

from collections.abc import Callable

import torch
from torch import Tensor

from plumbline.models.gp.process import GP


def through_covariances(
    process: GP, U: Tensor, utility: Callable[[Tensor], Tensor], X: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the values, `b`, and derivatives, `b x d`, of a utility of the prior covariances of points with others.

    Automatic differentiation goes as far as the covariances; theirs in the points are known.

    Args:
        process: of the prior.
        U: the others, `k x d` in the unit cube.
        utility: maps covariances, `b x k`, to values, `b`.
        X: `b x d`, in the problem's bounds.
    """
    K, vjp = process.prior_with_vjp(process.standardisation.inputs(X).unsqueeze(0), U.unsqueeze(0))
    with torch.enable_grad():
        value = utility(K.requires_grad_().squeeze(0))
        (grad_K,) = torch.autograd.grad(value.sum(), K)
    return value.detach(), vjp(grad_K).squeeze(0) / process.standardisation.width
