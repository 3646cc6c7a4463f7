"""Elementwise functions whose every digit is the same wherever a number is in its tensor.

torch computes the last few elements of a tensor one by one, the others several at once; its softplus, sigmoid and power
differ in the last digit between the two. Seeds that run together are parts of one tensor: what becomes of one must not
depend on how many others there are.
"""

from typing import Any

import torch
from torch import Tensor

FAR = 35.0
"""Where softplus is its exponential to the last digit."""


def softplus(x: Tensor) -> Tensor:
    """Return `log(1 + exp(x))`; without gradients at zero."""
    return x.clamp_min(0.0) + torch.log1p(torch.exp(-x.abs()))


def sigmoid(x: Tensor) -> Tensor:
    """Return `1 / (1 + exp(-x))`."""
    return 1 / (1 + torch.exp(-x))


class LogSoftplus(torch.autograd.Function):
    """`log(log(1 + exp(x)))`, which neither underflows nor overflows; BoTorch's `log_softplus`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Return the values at `x`, of any shape."""
        near = x.clamp_min(-FAR)
        positive = softplus(near)
        ctx.save_for_backward(torch.where(x < -FAR, 1.0, sigmoid(near) / positive))
        return torch.where(x < -FAR, x, positive.log())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """Return the gradient in `x`."""
        (slope,) = ctx.saved_tensors
        return gradient * slope


def log_softplus(x: Tensor) -> Tensor:
    """Return the logarithm of softplus at `x`, of any shape."""
    return LogSoftplus.apply(x)


def power(base: float, exponents: Tensor) -> Tensor:
    """Return a positive number raised to exponents."""
    return torch.exp(exponents * torch.tensor(base, dtype=torch.float64).log().item())
