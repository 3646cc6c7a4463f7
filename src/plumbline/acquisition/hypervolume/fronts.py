"""Partitioning of non-dominated regions into cells, batched over the fronts of all draws."""

from typing import NamedTuple

import torch
from botorch.utils.multi_objective.pareto import is_non_dominated
from torch import Tensor


class Bounds(NamedTuple):
    """Local upper bounds of the dominated regions of k fronts under minimisation; Lacour et al. (2017).

    Attributes:
        front: `r`, index of each bound's front.
        corner: `r x m`, the bounds.
        defining: `r x m x m`, the point that defines each of the m coordinates of a bound.
    """

    front: Tensor
    corner: Tensor
    defining: Tensor

    def rows(self, which: Tensor) -> "Bounds":
        """Return the bounds selected by `which`."""
        return Bounds(self.front[which], self.corner[which], self.defining[which])

    def below(self, points: Tensor) -> "Bounds":
        """Return the bounds after points are added to each front, one after another; algorithm 1.

        A bound above a new point is replaced by bounds that take one coordinate from the point. Such a bound is kept if
        that coordinate is no less than the same coordinate of the points that define its other coordinates.

        Args:
            points: `k x n x m`; infinite points are below no bound.
        """
        bounds = self
        for each in points.unbind(1):
            point = each[bounds.front]
            hit = (bounds.corner > point).all(-1)
            if not hit.any():
                continue
            split, point = bounds.rows(hit), point[hit]
            parts = [bounds.rows(~hit)]
            for j in range(point.shape[-1]):
                others = torch.arange(point.shape[-1]) != j
                bounded = point[:, j] >= split.defining[:, others, j].amax(-1)
                part = split.rows(bounded)
                part.corner[:, j] = point[bounded, j]
                part.defining[:, j] = point[bounded]
                parts.append(part)
            bounds = Bounds(*(torch.cat(column) for column in zip(*parts, strict=True)))
        return bounds


def without_points(worst: Tensor, best: Tensor, k: int) -> Bounds:
    """Return the bounds of k empty fronts, whose coordinates are between `best` and `worst`, both `m`."""
    defining = best.expand(len(best), -1).clone()
    defining.diagonal().copy_(worst)
    return Bounds(torch.arange(k), worst.repeat(k, 1), defining.repeat(k, 1, 1))


def side_by_side(front: Tensor, rows: Tensor, k: int, filling: float) -> Tensor:
    """Return the rows of each of k fronts as one padded tensor, `k x n x m`, in their order.

    Args:
        front: `r`, index of each row's front.
        rows: `r x m`.
        k: number of fronts.
        filling: padding of fronts with fewer rows than the largest.
    """
    order = front.argsort(stable=True)
    counts = front.bincount(minlength=k)
    place = torch.arange(len(front)) - (counts.cumsum(0) - counts)[front[order]]
    padded = rows.new_full((k, int(counts.max()), rows.shape[-1]), filling)
    padded[front[order], place] = rows[order]
    return padded


def cells_of_fronts(ref_point: Tensor, Y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower and upper corners of cells that partition the non-dominated region of k draws, `k x C x m`.

    They are those of BoTorch's `FastNondominatedPartitioning`, which takes one draw: first the bounds of the dominated
    region, then the cells of the region that dominates these bounds. Draws with fewer cells are padded with empty ones.

    Args:
        ref_point: `m`, the reference point.
        Y: `k x n x m`.
    """
    k, m = len(Y), Y.shape[-1]
    infinite = torch.full_like(ref_point, torch.inf)
    on_front = is_non_dominated(Y) & (ref_point < Y).all(-1)
    front, _ = on_front.nonzero(as_tuple=True)
    fronts = side_by_side(front, -Y[on_front], k, torch.inf)
    dominated = without_points(-ref_point, -infinite, k).below(fronts)
    above = without_points(infinite, ref_point, k).below(side_by_side(dominated.front, -dominated.corner, k, torch.inf))
    # Lacour et al. (2017), equation 2.
    lower = torch.stack([above.defining[:, : max(j, 1), j].amax(-1) for j in range(m)], -1)
    upper = torch.cat([infinite[:1].expand(len(lower), 1), above.corner[:, 1:]], -1)
    full = (upper > lower).all(-1)
    of = above.front[full]
    return side_by_side(of, lower[full], k, 0.0), side_by_side(of, upper[full], k, 0.0)
