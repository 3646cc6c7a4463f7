"""Smooth maxima and minima with fat tails, and their derivatives, as in BoTorch.

Their gradients vanish nowhere, so that a search can climb everywhere; Ament et al. (2023).
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus

FAT = 0.1
"""Weight of the bell in a smooth `x+`; as in BoTorch."""

NEAR = 40.0
"""Beyond it, softplus equals `x+` in all digits; below minus it, softplus is less than the last digit of the bell."""


def log_fat_relu(u: Tensor) -> tuple[Tensor, Callable[[], Tensor]]:
    """Return `log h(u)` with `h = softplus + 0.1 / (1 + u^2)`, and a function that returns its derivative.

    Differences in units of a small width are mostly far from zero: exponentials are computed only near zero.

    Args:
        u: overwritten by the derivative.
    """
    bell = u.square().add_(1).reciprocal_()
    near = (u.abs() < NEAR).view(-1).nonzero().squeeze(-1)
    close = u.view(-1)[near]
    height = u.clamp_min(0.0)
    height.view(-1)[near] = softplus(close)
    height.add_(bell, alpha=FAT)

    def derivative() -> Tensor:
        step = (u > 0).to(u)
        step.view(-1)[near] = torch.sigmoid(close)
        return step.addcmul_(u.mul_(bell), bell, value=-2 * FAT).div_(height)

    return height.log(), derivative


def smooth_least(x: Tensor, width: float) -> tuple[Tensor, Callable[[], Tensor]]:
    """Return smooth minima over the second dimension, and a function that returns their derivatives.

    Derivatives sum to one. A minimum is `min x - t log sum p((x - min x) / t)` with `p(r) = 2 / (2 + 2 r + r^2)`, whose
    derivative is `-(1 + r) p^2`.

    Args:
        x: `a x i x ...`.
        width: t.

    Returns:
        `a x ...`, and a function that may be called once.
    """
    if x.shape[1] == 1:
        return x.squeeze(1), lambda: torch.ones_like(x)
    least, chosen = x.min(1, keepdim=True)
    r = (x - least).div_(width)
    p = (r + 2).mul_(r).add_(2).reciprocal_().mul_(2)
    total = p.sum(1, keepdim=True)

    def derivatives() -> Tensor:
        shares = p.square_().mul_(r.add_(1)).div_(total)
        return shares.scatter_add_(1, chosen, 1 - shares.sum(1, keepdim=True))

    return (least - width * total.log()).squeeze(1), derivatives


def lesser(x: Tensor, y: Tensor, width: float) -> tuple[Tensor, Tensor, Callable[[], Tensor]]:
    """Return the parts of the smooth minimum `min(x, y) - t log total`, and a function for its derivative in `x`.

    It is `smooth_least` of two numbers, where `total` is `1 + p(r)` with `r = |x - y| / t`. With `R = (1 + r)^2` it is
    `(3 + R) / (1 + R)`, and the derivative in the greater number is `4 (1 + r) / ((1 + R) (3 + R))`.

    Args:
        x, y: tensors whose shapes broadcast to that of `x`.
        width: t.

    Returns:
        `min(x, y)`, `total`, and a function that may be called once.
    """
    away = (x - y).div_(width)
    r = away.abs().add_(1)
    below = r.square().add_(1)
    above = below + 2

    def share() -> Tensor:
        of_greater = r.mul_(4).div_(above).div_(below)
        return torch.where(away > 0, of_greater, 1 - of_greater)

    return torch.minimum(x, y), above / below, share
