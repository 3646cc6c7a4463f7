"""The smooth log mean hypervolume that draws of a batch add to a front, with a hand-written gradient.

It is BoTorch's `qLogEHVI` (Daulton et al., 2020; Ament et al., 2023). The region of a cell that all points of a subset
dominate is a box. Each of its sides is the smooth minimum of the cell's side and of the points' smooth improvements
over the cell's lower corner. Inclusion-exclusion sums these boxes.

A point in a draw improves on few cells. A cheap bound of the box of each point in each cell selects them. The omitted
boxes, with all boxes of subsets within them, are less than 1e-10 of the sum. Quantities of a selected point and cell
are computed once for all subsets.
"""

import math
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import torch
from botorch.acquisition.logei import TAU_RELU
from torch import Tensor

from plumbline.acquisition.smooth_maximum import FAT, lesser, log_fat_relu, smooth_least

OfOutcomes = Callable[[Tensor], tuple[Tensor, Callable[[], Tensor]]]
"""Maps draws of m outcomes, `m x b x q x S`, to acquisition values, `b`, and a function that returns derivatives."""

FARTHEST = 1e10
"""Upper end of unbounded cells; as in BoTorch."""

SHORTEST = 1e-300
"""Least side of a cell, so that empty cells have a logarithm."""

LEAST = 1e-18
"""Boxes below this share of the greatest are omitted."""

AT_ONCE = 2**18
"""Number of boxes that are bounded together: a few arrays of this size fit into a core's cache."""


class Cells(NamedTuple):
    """Cells that partition the non-dominated region of a front, with one front for all draws or one per draw.

    Attributes:
        lower: `m x C x 1` or `m x C x S`, lower corners.
        length: sides, of the same shape.
    """

    lower: Tensor
    length: Tensor


def cells_between(lower: Tensor, upper: Tensor) -> Cells:
    """Return the cells between corners, `C x m` or `S x C x m`."""
    length = (upper.clamp_max(FARTHEST) - lower).clamp_min(SHORTEST)
    return Cells(*(one.view(-1, *one.shape[-2:]).permute(2, 1, 0).contiguous() for one in (lower, length)))


def log_hypervolume_improvement(cells: Cells, width: float) -> OfOutcomes:
    """Return the log mean hypervolume that a batch adds.

    Args:
        cells: partition of the non-dominated region.
        width: width of smooth minima, in logarithms.
    """

    def value(f: Tensor) -> tuple[Tensor, Callable[[], Tensor]]:
        each = f[0, 0].numel() * cells.lower.shape[1]
        sums = [_log_sum(part, cells, width) for part in f.split(max(1, AT_ONCE // each), dim=1)]
        values = torch.cat([one for one, _ in sums]) - math.log(f.shape[-1])
        return values, lambda: torch.cat([derivatives() for _, derivatives in sums], 1)

    return value


def _bounds(f: Tensor, cells: Cells) -> Tensor:
    """Return approximate upper bounds of each point's improvement on each cell, `q x b x C x S`.

    They omit the small terms of smooth minima and use `x+` for softplus. They may be too
    small only within 4e-5 of a cell's corner, where the exact side is up to eight times as long.

    Args:
        f: `m x q x b x S`.
        cells: partition of the non-dominated region.
    """
    bounds, bell = torch.ones((), dtype=f.dtype), f.new_tensor(FAT * TAU_RELU**3)
    for outcome, lower, length in zip(f.unsqueeze(-2), *cells, strict=True):
        ahead = outcome - lower
        side = torch.addcdiv(ahead.clamp_min(0.0), bell, ahead.square_().add_(TAU_RELU**2))
        bounds = torch.minimum(side, length, out=side).mul_(bounds)
    return bounds


def _log_sum(f: Tensor, cells: Cells, width: float) -> tuple[Tensor, Callable[[], Tensor]]:
    """Return log hypervolumes that batches add, summed over draws, and a function that returns their derivatives.

    Args:
        f: `m x b x q x S`.
        cells: partition of the non-dominated region.
        width: width of smooth minima.
    """
    m, b, q, S = f.shape
    bounds = _bounds(f.transpose(1, 2).contiguous(), cells)
    top = bounds.amax((0, 2, 3))
    counts, batch, draw, cell = _places(bounds > LEAST * top[:, None, None], cells)
    # The pairs of a point and a place where its improvement counts.
    point, where = counts.nonzero().unbind(1)
    source = ((batch * q)[where] + point) * S + draw[where]
    ahead = f.reshape(m, -1)[:, source] - cells.lower.view(m, -1)[:, cell[where]]
    v, slopes = log_fat_relu(ahead.div_(TAU_RELU))
    log_length, log_top = (cells.length / TAU_RELU).log().view(m, -1), (top / TAU_RELU**m).log()
    rank = (counts.view(-1).cumsum(0) - 1).view(q, -1)
    total, parts = torch.zeros_like(top), []
    for size in range(1, q + 1):
        members, where = _subsets(counts, rank, size)
        common, shares = smooth_least(v[:, members], width)
        least, totals, share = lesser(common, log_length[:, cell[where]], width)
        area = least.sum(0).sub_(totals.prod(0).log_(), alpha=width)
        batches = batch[where]
        volume = area.sub_(log_top[batches]).exp_().mul_((-1) ** (size + 1))
        total.index_add_(0, batches, volume)
        parts.append((members, batches, volume, shares, share))

    def derivatives() -> Tensor:
        grad_v = torch.zeros_like(v)
        for members, batches, volume, shares, share in parts:
            grad_side = share().mul_(volume.div_(total[batches]))
            grad_members = shares().mul_(grad_side.unsqueeze(1)).flatten(1)
            grad_v.scatter_add_(1, members.view(-1).expand_as(grad_members), grad_members)
        grad_f = f.new_zeros(m, b * q * S)
        return grad_f.scatter_add_(1, source.expand(m, -1), grad_v.mul_(slopes()).div_(TAU_RELU)).view(f.shape)

    return log_top + total.log() + m * math.log(TAU_RELU), derivatives


def _places(counts: Tensor, cells: Cells) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the n places, each a cell in a draw, where at least one point of a batch counts.

    Args:
        counts: `q x b x C x S`, whether each point counts there.
        cells: partition of the non-dominated region.

    Returns:
        Whether each point counts at each place, `q x n`, and the indices of the place's batch, draw and cell. If each
        draw has cells of its own, the index is among the cells of all draws.
    """
    q, _, C, S = counts.shape
    place = counts.any(0).view(-1).nonzero().squeeze(-1)
    batch, within = place.div(C * S, rounding_mode="floor"), place % (C * S)
    cell = within if cells.lower.shape[-1] > 1 else within.div(S, rounding_mode="floor")
    return counts.view(q, -1)[:, place], batch, within % S, cell


def _subsets(counts: Tensor, rank: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the subsets of `size` points that all count at one place, with the place.

    Args:
        counts: `q x n`, whether each point counts at each of n places.
        rank: `q x n`, the index of each pair of a point and a place that counts.
        size: number of points in a subset, i.

    Returns:
        The indices of their pairs, `i x N`, and `N` places.
    """
    members, places = [], []
    for subset in map(list, combinations(range(len(counts)), size)):
        where = counts[subset].all(0).nonzero().squeeze(-1)
        members.append(rank[subset][:, where])
        places.append(where)
    return torch.cat(members, 1), torch.cat(places)
