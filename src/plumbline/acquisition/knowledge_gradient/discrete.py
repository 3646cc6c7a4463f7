"""The knowledge gradient of an exact process over finitely many points; Frazier et al. (2009), Scott et al. (2011)."""

import torch
from torch import Tensor

from plumbline.acquisition.knowledge_gradient.mean_update import Targets, believed, standard_normal
from plumbline.models.gp.process import GP
from plumbline.spaces.with_gradient import Differentiated

AT_ONCE = 32
"""Queries whose updated means are in memory at a time."""


class DiscreteKnowledgeGradient(Differentiated):
    """`E max_t mu_n+1(x'_t) - max_t mu_n(x'_t)`, given that x is observed next, with noise.

    The expectation is over one normal variable: a mean over equally likely quantiles. Points that are pending count as
    if they had been seen, and had been what is expected there.

    Args:
        process: fitted.
        points: x', `T x d`, in the problem's bounds.
        samples: quantiles.
    """

    def __init__(self, process: GP, points: Tensor, samples: int) -> None:
        super().__init__(process.model)
        self.process = process
        self.points = points
        self.Z = standard_normal(samples)
        self.set_X_pending(None)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Go on as if `p x d` points had been seen."""
        super().set_X_pending(X_pending)
        now = self.process if X_pending is None else believed(self.process, X_pending)
        self.targets = Targets(now, self.points)
        self.best = self.targets.mean.max()

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values at `b x 1 x d` points, `b`, and their derivatives, `b x 1 x d`."""
        values, gradients = [], []
        for part in X.squeeze(-2).split(AT_ONCE):
            gain, vjp = self.targets.gains(part)
            value, chosen = self._greatest(gain)
            grad_gain = torch.zeros_like(gain).scatter_add_(-1, chosen, (self.Z / len(self.Z)).expand(chosen.shape))
            values.append(value)
            gradients.append(vjp(grad_gain))
        return torch.cat(values), torch.cat(gradients).unsqueeze(-2)

    def values(self, X: Tensor) -> Tensor:
        """Return the values at `b x 1 x d` points: `b`."""
        parts = X.squeeze(-2).split(AT_ONCE)
        return torch.cat([self._greatest(self.targets.gains(part)[0])[0] for part in parts])

    def _greatest(self, gain: Tensor) -> tuple[Tensor, Tensor]:
        """Return the expected gain of the greatest mean, `b`, and which one it is by quantile, `b x S`."""
        greatest, chosen = (self.targets.mean.unsqueeze(-2) + gain.unsqueeze(-2) * self.Z.unsqueeze(-1)).max(-1)
        return (greatest - self.best).mean(-1), chosen
