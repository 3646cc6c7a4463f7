"""What many fronts do not dominate, cut into cells: the fronts of all draws at once."""

from typing import NamedTuple

import torch
from botorch.utils.multi_objective.pareto import is_non_dominated
from torch import Tensor


class Bounds(NamedTuple):
    """Local upper bounds of what some points, of k fronts, dominate when less is better; Lacour et al. (2017).

    Attributes:
        front: `r`, whose each is.
        corner: `r x m`, the bounds.
        defining: `r x m x m`, for each of the m coordinates of a bound the point that it is of.
    """

    front: Tensor
    corner: Tensor
    defining: Tensor

    def rows(self, which: Tensor) -> "Bounds":
        """Return some of them."""
        return Bounds(self.front[which], self.corner[which], self.defining[which])

    def below(self, points: Tensor) -> "Bounds":
        """Return the bounds once points are among those that dominate, each front's one after another.

        A bound that a point is below gives way to those with one coordinate of the point, where that is no less than
        the same coordinate of the points that define the others: algorithm 1.

        Args:
            points: `k x n x m`; infinite ones are below no bound.
        """
        found = self
        for each in points.unbind(1):
            point = each[found.front]
            hit = (found.corner > point).all(-1)
            if not hit.any():
                continue
            split, point = found.rows(hit), point[hit]
            parts = [found.rows(~hit)]
            for j in range(point.shape[-1]):
                others = torch.arange(point.shape[-1]) != j
                bounded = point[:, j] >= split.defining[:, others, j].amax(-1)
                part = split.rows(bounded)
                part.corner[:, j] = point[bounded, j]
                part.defining[:, j] = point[bounded]
                parts.append(part)
            found = Bounds(*(torch.cat(column) for column in zip(*parts, strict=True)))
        return found


def without_points(worst: Tensor, best: Tensor, k: int) -> Bounds:
    """Return the bounds of k fronts without points, whose coordinates are between `best` and `worst`, both `m`."""
    defining = best.expand(len(best), -1).clone()
    defining.diagonal().copy_(worst)
    return Bounds(torch.arange(k), worst.repeat(k, 1), defining.repeat(k, 1, 1))


def side_by_side(front: Tensor, rows: Tensor, k: int, filling: float) -> Tensor:
    """Return the rows, `r x m`, of each of k fronts, `k x n x m`: in their order, and filled up.

    Args:
        front: `r`, whose each row is.
        rows: what they are.
        k: how many fronts.
        filling: of those with fewer than the most.
    """
    order = front.argsort(stable=True)
    counts = front.bincount(minlength=k)
    place = torch.arange(len(front)) - (counts.cumsum(0) - counts)[front[order]]
    found = rows.new_full((k, int(counts.max()), rows.shape[-1]), filling)
    found[front[order], place] = rows[order]
    return found


def cells_of_fronts(ref_point: Tensor, Y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower and upper corners of cells that fill what each of k draws does not dominate, `k x C x m`.

    They are those of BoTorch's `FastNondominatedPartitioning`, which is of one draw: first the bounds of what is
    dominated, then cells of what dominates these in turn. Draws with fewer cells have empty ones besides.

    Args:
        ref_point: `m`, nothing counts that is not above it.
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
