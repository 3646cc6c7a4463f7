"""Elementwise functions whose results do not depend, to the last digit, on a number's position in its tensor.

torch vectorises all but the last few elements of a tensor, and its softplus, sigmoid and power differ in the last digit
between the vectorised and the scalar loop. Seeds that run together are parts of one tensor. The results of a seed must
not depend on the number of others.
"""

import math

import torch
from torch import Tensor

FAR = 35.0
"""Below minus this, softplus equals the exponential to the last digit."""


def softplus(x: Tensor) -> Tensor:
    """Return `log(1 + exp(x))`; not for autograd, whose gradient at zero is wrong."""
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
    # The slope is sigmoid over softplus, here the exponential of the difference of their logarithms.
    slope = (near - positive).sub_(logarithm).exp_()
    return logarithm.add_(x - near), slope


def power(base: float, exponents: Tensor) -> Tensor:
    """Return `base > 0` raised to `exponents`."""
    return torch.exp(exponents * math.log(base))
