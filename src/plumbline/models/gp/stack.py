"""Batched posteriors of several GPs, on the same inputs or of one size: one by one, most of the time is overhead."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.models.algebra import correlations, squared_distances
from plumbline.models.gp.marginal import LEAST_VARIANCE
from plumbline.models.gp.process import GP


class GPStack:
    """GPs with the same inputs, box and kernel.

    Attributes:
        processes: m GPs.
    """

    def __init__(self, processes: Sequence[GP]) -> None:
        self.processes = processes
        first = processes[0]
        self.low, self.width, self.kernel = first.standardisation.low, first.standardisation.width, first.kernel
        self.lengthscale = torch.stack([one.lengthscale.expand(first.U.shape[-1]) for one in processes]).unsqueeze(-2)
        self.scaled = first.U / self.lengthscale
        self.inverse_root = torch.stack([one.inverse_root for one in processes])
        self.whitened = torch.stack([one.whitened for one in processes]).unsqueeze(-1)
        self.a = torch.stack([one.a for one in processes]).unsqueeze(-2)
        self.outputscale = self._column([float(one.at.outputscale) for one in processes]).unsqueeze(-1)
        self.constant = self._column([float(one.at.constant) for one in processes])
        self.location = self._column([one.standardisation.location for one in processes])
        self.scale = self._column([one.standardisation.scale for one in processes])
        self.spread = self._column([one.standardisation.scale * one.deviation for one in processes])

    def _column(self, numbers: list[float]) -> Tensor:
        return self.scaled.new_tensor(numbers).unsqueeze(-1)

    def marginal_posterior(self, X: Tensor) -> "StackPosterior":
        """Return the marginal posteriors of each f at points.

        Args:
            X: `b x d`, in the problem's bounds.
        """
        scaled = (X - self.low) / self.width / self.lengthscale
        correlation, slope = correlations(squared_distances(scaled, self.scaled), self.kernel)
        half = (correlation * self.outputscale) @ self.inverse_root.mT
        variance = (self.outputscale.squeeze(-1) - half.square().sum(-1)).clamp_min(LEAST_VARIANCE)
        mean = self.location + self.scale * (self.constant + (half @ self.whitened).squeeze(-1))
        return StackPosterior(self, scaled, slope, half, mean, variance.sqrt())


@dataclass(frozen=True)
class StackPosterior:
    """Marginal posteriors of m GPs at `b` points; see `GPMarginalPosterior`.

    Attributes:
        stack: the m GPs.
        scaled: `m x b x d`, the points in lengthscales.
        slope: `m x b x n`, `-2 dk/dr^2` of their correlations with the data.
        half: `m x b x n`, `R^-1 k`.
        mean: means of f, `m x b`, in the units of the observations.
        spread: standard deviations, `m x b`, standardised.
    """

    stack: GPStack
    scaled: Tensor
    slope: Tensor
    half: Tensor
    mean: Tensor
    spread: Tensor

    @property
    def sd(self) -> Tensor:
        """Standard deviations of f, `m x b`, in the units of the observations."""
        return self.stack.spread * self.spread

    def vjp(self, grad_mean: Tensor, grad_sd: Tensor) -> Tensor:
        """Return gradients in the points, `m x b x d` in the problem's bounds, of functions of each GP's mean and sd.

        Args:
            grad_mean, grad_sd: `m x b`, its derivatives in them.
        """
        stack = self.stack
        grad_half = (-stack.spread * grad_sd / self.spread).unsqueeze(-1) * self.half
        grad_k = torch.baddbmm((stack.scale * grad_mean).unsqueeze(-1) * stack.a, grad_half, stack.inverse_root)
        weights = grad_k.mul_(self.slope).mul_(stack.outputscale)
        gradient = weights @ stack.scaled - weights.sum(-1, keepdim=True) * self.scaled
        return gradient / (stack.lengthscale * stack.width)


def stacked(processes: Sequence[GP]) -> list[tuple[list[int], GPStack]]:
    """Return the fewest stacks that hold all GPs, each with the numbers of its GPs."""
    groups: list[list[int]] = []
    for i, process in enumerate(processes):
        alike = (group for group in groups if _share_inputs(processes[group[0]], process))
        group = next(alike, None)
        if group is None:
            groups.append([i])
        else:
            group.append(i)
    return [(group, GPStack([processes[i] for i in group])) for group in groups]


def _share_inputs(one: GP, other: GP) -> bool:
    standardisation, others = one.standardisation, other.standardisation
    alike = one.kernel == other.kernel and torch.equal(one.U, other.U)
    return alike and torch.equal(standardisation.low, others.low) and torch.equal(standardisation.width, others.width)


def scores_each(processes: Sequence[GP], X: Tensor, Y: Tensor) -> Tensor:
    """Return the standard scores of new observations, one for each of m GPs: `m`.

    With the new observation last and `R R'` the covariance of all, its score is the last element of
    `R^-1 (y - constant)`; as in `GP.whitened`. NaN where there is no Cholesky factor.

    Args:
        processes: GPs of one size, box and kernel, each with one noise variance.
        X: `m x d`, in the problem's bounds.
        Y: `m x 1`.
    """
    units = [one.standardisation for one in processes]
    U = torch.cat([torch.stack([one.U for one in processes]), units[0].inputs(X).unsqueeze(1)], dim=1)
    new = torch.stack([unit.outputs(y) for unit, y in zip(units, Y, strict=True)])
    y = torch.cat([torch.stack([one.y for one in processes]), new], dim=-1)
    scaled = U / torch.stack([one.lengthscale for one in processes]).unsqueeze(1)
    correlation, _ = correlations(squared_distances(scaled, scaled), processes[0].kernel)
    covariance = correlation * X.new_tensor([one.at.outputscale for one in processes])[:, None, None]
    covariance.diagonal(dim1=-2, dim2=-1).add_(torch.stack([one.at.noise for one in processes]))
    root, broken = torch.linalg.cholesky_ex(covariance)
    residual = y - X.new_tensor([one.at.constant for one in processes]).unsqueeze(-1)
    scores = torch.linalg.solve_triangular(root, residual.unsqueeze(-1), upper=False)[:, -1, 0]
    return scores.where(broken == 0, math.nan)
