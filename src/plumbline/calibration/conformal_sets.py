"""Exact conformal sets for one test point and one output: unions of intervals, by root finding and a sweep; no grid."""

from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.calibration.conformal import conformity_mass


@dataclass(frozen=True)
class ConformalSets:
    """Unions of intervals, one a test point, in standard scores.

    Attributes:
        edges: `b x (e + 1)`, sorted; the first is -inf and the last inf.
        inside: `b x e`, which of the intervals between them belong to the set.
    """

    edges: Tensor
    inside: Tensor

    def width(self) -> Tensor:
        """Return the total length, `b`; inf where the set is unbounded."""
        lengths = self.edges[:, 1:] - self.edges[:, :-1]
        return torch.where(self.inside, lengths, 0.0).sum(dim=-1)

    def intervals(self) -> list[list[tuple[float, float]]]:
        """Return the maximal intervals of each set, from left to right."""
        return [_joined(edges, inside) for edges, inside in zip(self.edges.tolist(), self.inside.tolist(), strict=True)]


def _joined(edges: list[float], inside: list[bool]) -> list[tuple[float, float]]:
    """Return the intervals that are inside, those that touch made one."""
    whole: list[tuple[float, float]] = []
    for low, high, is_inside in zip(edges[:-1], edges[1:], inside, strict=True):
        if not is_inside:
            continue
        if whole and whole[-1][1] == low:
            low = whole.pop()[0]
        whole.append((low, high))
    return whole


def exact_sets(coefficients: Tensor, weights: Tensor, alpha: float) -> ConformalSets:
    """Return the conformal sets: the mass changes only at the roots of the quadratics.

    Args:
        coefficients: `b x 1 x n x 3` of `quadratics` at single test points with one output.
        weights: `b x 1 x (n + 1)`, the label's own last; they sum to one.
        alpha: miscoverage.
    """
    constant, linear, square = coefficients.squeeze(1).unbind(dim=-1)
    # The root of larger size by the stable formula, the other from their product; a straight line has one.
    discriminant = (linear.square() - 4 * square * constant).sqrt()
    sum_ = -0.5 * (linear + torch.copysign(discriminant, linear))
    roots = torch.cat([sum_ / square, constant / sum_], dim=-1)
    roots = torch.where(roots.isfinite(), roots, torch.inf).sort(dim=-1).values
    ends = torch.full_like(roots[:, :1], torch.inf)
    edges = torch.cat([-ends, roots, ends], dim=-1)
    mass = conformity_mass(coefficients, weights, _between(edges)[..., None, None]).squeeze(1)
    return ConformalSets(edges, (mass > alpha) & (edges[:, 1:] > edges[:, :-1]))


def _between(edges: Tensor) -> Tensor:
    """Return a point inside each interval, unbounded ones included."""
    low, high = edges[:, :-1], edges[:, 1:]
    middle = torch.where(low.isneginf(), high - 1.0, torch.where(high.isposinf(), low + 1.0, 0.5 * (low + high)))
    # What is left are the whole line, and empty intervals at infinity: any point will do.
    return torch.where(middle.isfinite(), middle, 0.0)
