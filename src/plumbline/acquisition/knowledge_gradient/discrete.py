"""The knowledge gradient of a GP over finitely many points; Frazier et al. (2009), Scott et al. (2011)."""

import torch
from torch import Tensor

from plumbline.acquisition.knowledge_gradient.mean_update import Targets, standard_normal
from plumbline.models.gp.process import GP
from plumbline.spaces.with_gradient import Differentiated

AT_ONCE = 32
"""Number of queries whose updated means are in memory together."""


class DiscreteKnowledgeGradient(Differentiated):
    """`E max_t mu_n+1(x'_t) - max_t mu_n(x'_t)`, where x is observed next, with noise.

    The expectation is over one normal variable: a mean over equally likely quantiles. Pending points count as observed
    at their posterior means.

    Args:
        process: fitted GP.
        points: x', `T x d`, in the problem's bounds.
        samples: number of quantiles.
    """

    def __init__(self, process: GP, points: Tensor, samples: int) -> None:
        super().__init__(process.model)
        self.unit = process.standardisation.scale
        self.process = process
        self.points = points
        self.Z = standard_normal(samples)
        self.set_X_pending(None)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Condition the GP on pending points, `p x d`, at their posterior means."""
        super().set_X_pending(X_pending)
        now = self.process if X_pending is None else self.process.kriging_believer(X_pending)
        self.targets = Targets(now, self.points)
        self.best = self.targets.mean.max()

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values at `b x 1 x d` points, `b`, and their derivatives, `b x 1 x d`."""
        values, gradients = [], []
        for part in X.squeeze(-2).split(AT_ONCE):
            change, vjp = self.targets.mean_changes(part)
            value, chosen = self._greatest(change)
            grad_change = torch.zeros_like(change).scatter_add_(-1, chosen, (self.Z / len(self.Z)).expand(chosen.shape))
            values.append(value)
            gradients.append(vjp(grad_change))
        return torch.cat(values), torch.cat(gradients).unsqueeze(-2)

    def values(self, X: Tensor) -> Tensor:
        """Return the values at `b x 1 x d` points: `b`."""
        parts = X.squeeze(-2).split(AT_ONCE)
        return torch.cat([self._greatest(self.targets.mean_changes(part)[0])[0] for part in parts])

    def _greatest(self, change: Tensor) -> tuple[Tensor, Tensor]:
        """Return the expected increase of the greatest mean, `b`, and its index per quantile, `b x S`."""
        greatest, chosen = (self.targets.mean.unsqueeze(-2) + change.unsqueeze(-2) * self.Z.unsqueeze(-1)).max(-1)
        return (greatest - self.best).mean(-1), chosen
