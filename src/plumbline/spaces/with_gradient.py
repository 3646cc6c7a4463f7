"""Functions with gradients by hand, which searches climb."""

from abc import abstractmethod
from typing import Any

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor


class Differentiated(AcquisitionFunction):
    """A utility whose gradient is computed by hand: what climbs it asks for both at once.

    It can be differentiated automatically too, once, for whatever else is built on it.

    Attributes:
        nonnegative: whether it is nowhere below zero and may be zero in much of a space: a search had better not start
            where it is. BoTorch knows this of its own utilities.
    """

    nonnegative: bool = False

    @abstractmethod
    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the utilities of `b x q x d` points, `b`, and their derivatives, `b x q x d`."""

    def values(self, X: Tensor) -> Tensor:
        """Return the utilities of `b x q x d` points, `b`; a subclass may save itself the gradient."""
        return self.value_and_gradient(X)[0]

    def forward(self, X: Tensor) -> Tensor:
        """Return the utilities of `batch_shape x q x d` points: `batch_shape`."""
        if torch.is_grad_enabled() and X.requires_grad:
            return _ByHand.apply(X, self)
        with torch.no_grad():
            return self.values(X.reshape(-1, *X.shape[-2:])).reshape(X.shape[:-2])

    def with_pending(self, X: Tensor) -> Tensor:
        """Return `b x q x d` points with the p pending ones behind them, `b x (q + p) x d`."""
        return X if self.X_pending is None else torch.cat([X, self.X_pending.expand(len(X), -1, -1)], -2)


class _ByHand(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, X: Tensor, utility: Differentiated) -> Tensor:
        value, gradient = utility.value_and_gradient(X.reshape(-1, *X.shape[-2:]))
        ctx.save_for_backward(gradient.reshape(X.shape))
        return value.reshape(X.shape[:-2])

    @staticmethod
    def backward(ctx: Any, pulled: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return pulled[..., None, None] * gradient, None
