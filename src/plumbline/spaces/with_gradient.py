"""Acquisition functions with hand-written gradients."""

from abc import abstractmethod
from typing import Any

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor


class Differentiated(AcquisitionFunction):
    """An acquisition function that returns its value and a hand-written gradient together, for searches.

    Autograd can differentiate it once too, for code that builds on it.

    Attributes:
        nonnegative: whether it is nonnegative and may be zero in much of the space, so that a search should not start
            where it is zero. BoTorch has a list of its own functions of this kind.
    """

    nonnegative: bool = False

    @abstractmethod
    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the acquisition values of `b x q x d` points, `b`, and their derivatives, `b x q x d`."""

    def values(self, X: Tensor) -> Tensor:
        """Return the acquisition values of `b x q x d` points, `b`; a subclass may skip the gradient."""
        return self.value_and_gradient(X)[0]

    def forward(self, X: Tensor) -> Tensor:
        """Return the acquisition values of `batch_shape x q x d` points: `batch_shape`."""
        if torch.is_grad_enabled() and X.requires_grad:
            return _ByHand.apply(X, self)
        with torch.no_grad():
            return self.values(X.reshape(-1, *X.shape[-2:])).reshape(X.shape[:-2])

    def with_pending(self, X: Tensor) -> Tensor:
        """Return `b x q x d` points followed by the p pending points, `b x (q + p) x d`."""
        return X if self.X_pending is None else torch.cat([X, self.X_pending.expand(len(X), -1, -1)], -2)


class _ByHand(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, X: Tensor, acquisition: Differentiated) -> Tensor:
        value, gradient = acquisition.value_and_gradient(X.reshape(-1, *X.shape[-2:]))
        ctx.save_for_backward(gradient.reshape(X.shape))
        return value.reshape(X.shape[:-2])

    @staticmethod
    def backward(ctx: Any, grad_value: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return grad_value[..., None, None] * gradient, None
