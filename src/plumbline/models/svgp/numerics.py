"""Elementwise functions whose every digit is the same wherever a number is in its tensor.

torch computes the last few elements of a tensor one by one, the others several at once; its softplus, sigmoid and power
differ in the last digit between the two. Seeds that run together are parts of one tensor: what becomes of one must not
depend on how many others there are.
"""

import math

import torch
from torch import Tensor

FAR = 35.0
"""Where softplus is its exponential to the last digit."""


def softplus(x: Tensor) -> Tensor:
    """Return `log(1 + exp(x))`; without gradients at zero."""
    return x.clamp_min(0.0) + torch.log1p(torch.exp(-x.abs()))


def sigmoid(x: Tensor) -> Tensor:
    """Return `1 / (1 + exp(-x))`."""
    return torch.exp(-x).add_(1).reciprocal_()


def log_softplus(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return `log(log(1 + exp(x)))`, which neither underflows nor overflows, and its slope, at `x` of any shape.

    BoTorch's `log_softplus`.
    """
    near = x.clamp_min(-FAR)
    positive = softplus(near)
    logarithm = positive.log()
    # Sigmoid over softplus, as the exponential of the difference of their logarithms.
    slope = (near - positive).sub_(logarithm).exp_()
    return logarithm.add_(x - near), slope


def power(base: float, exponents: Tensor) -> Tensor:
    """Return a positive number raised to exponents."""
    return torch.exp(exponents * math.log(base))
