"""Acquisition functions with hand-written gradients."""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from typing import Any, Self

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from plumbline.core.units import usual_unit

ClimbEvaluation = Callable[[Tensor, Sequence[int]], tuple[Tensor, Tensor]]
"""Maps `p x q x d` points, and the numbers of their climbs, ascending, to values, `p`, and gradients, `p x q x d`."""


class Differentiated(AcquisitionFunction):
    """An acquisition function that returns its value and a hand-written gradient together, for searches.

    Autograd can differentiate it once too, for code that builds on it.

    Attributes:
        nonnegative: whether it is nonnegative and may be zero in much of the space, so that a search should not start
            where it is zero. BoTorch has a list of its own functions of this kind.
        unit: unit of its values, the standard deviation of the observations for instance; 1 for values without units.
            The tolerances of a search are absolute.
    """

    nonnegative: bool = False
    unit: float = 1.0

    @abstractmethod
    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the acquisition values of `b x q x d` points, `b`, and their derivatives, `b x q x d`."""

    def values(self, X: Tensor) -> Tensor:
        """Return the acquisition values of `b x q x d` points, `b`; a subclass may skip the gradient."""
        return self.value_and_gradient(X)[0]

    @property
    def kind(self) -> Hashable:
        """What acquisition functions have in common that are evaluated together; None for those evaluated alone."""
        return None

    @classmethod
    def evaluation(cls, acquisitions: Sequence[Self], climbs: int) -> ClimbEvaluation:
        """Return the evaluation of acquisition functions of one kind, or of a single one, with `climbs` climbs each.

        The numbers of one do not depend on the others, to the last bit.
        """
        (acquisition,) = acquisitions
        return lambda X, rows: acquisition.value_and_gradient(X)

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


class _Rescaled(AcquisitionFunction):
    """An acquisition function divided by a unit."""

    def __init__(self, acquisition: AcquisitionFunction, unit: float) -> None:
        super().__init__(acquisition.model)
        self.acquisition, self.divisor = acquisition, unit

    def forward(self, X: Tensor) -> Tensor:
        return self.acquisition(X) / self.divisor


class _RescaledByHand(Differentiated):
    """An acquisition function with a hand-written gradient, divided by a unit."""

    def __init__(self, acquisition: Differentiated, unit: float) -> None:
        super().__init__(acquisition.model)
        self.acquisition, self.divisor, self.nonnegative = acquisition, unit, acquisition.nonnegative

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        self.acquisition.set_X_pending(X_pending)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = self.acquisition.value_and_gradient(X)
        return value / self.divisor, gradient / self.divisor

    def values(self, X: Tensor) -> Tensor:
        return self.acquisition.values(X) / self.divisor


def in_usual_units(acquisition: AcquisitionFunction) -> AcquisitionFunction:
    """Return an acquisition function with the same maximiser whose values the tolerances of a search suit.

    Its `unit`, where it has one, says what its values are measured in.
    """
    measured = getattr(acquisition, "unit", 1.0)
    unit = float(usual_unit(measured)) if isinstance(measured, float) else 1.0
    if unit == 1.0:
        return acquisition
    return (_RescaledByHand if isinstance(acquisition, Differentiated) else _Rescaled)(acquisition, unit)


def evaluation_of(acquisitions: Sequence[Differentiated], climbs: int) -> ClimbEvaluation:
    """Return the evaluation of acquisition functions, each with `climbs` climbs: together where all are of one kind."""
    first = acquisitions[0]
    if len(acquisitions) == 1 or (first.kind is not None and all(one.kind == first.kind for one in acquisitions)):
        return first.evaluation(acquisitions, climbs)
    apart = [one.evaluation([one], climbs) for one in acquisitions]

    def evaluate(X: Tensor, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        own = [(owner, [row % climbs for row in part]) for owner, part in groupby(rows, lambda row: row // climbs)]
        points = X.split([len(part) for _, part in own])
        found = [apart[owner](x, part) for (owner, part), x in zip(own, points, strict=True)]
        values, gradients = zip(*found, strict=True)
        return torch.cat(values), torch.cat(gradients)

    return evaluate
