"""Hypervolume improvement of a batch of outcomes over a front."""

from itertools import combinations

import torch
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from torch import Tensor

from plumbline.acquisition.hypervolume.fronts import cells_of_fronts


def free_cells(ref_point: Tensor, Y: Tensor) -> tuple[Tensor, Tensor]:
    """Return lower and upper corners of boxes that partition the region above the reference point not dominated by Y.

    Args:
        ref_point: `m`.
        Y: `n x m`, or `k x n x m` for `k` draws.

    Returns:
        Two `c x m`, or `k x c x m`: draws with fewer boxes are padded with empty ones.
    """
    if Y.ndim == 3 and Y.shape[-1] > 2:
        return cells_of_fronts(ref_point, Y)
    lower, upper = FastNondominatedPartitioning(ref_point=ref_point, Y=Y).get_hypercell_bounds()
    return lower, upper


def hypervolume_improvement(f: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return the volume that a batch newly dominates, by inclusion and exclusion; Daulton et al. (2020), eq. 5.

    Args:
        f: `... x q x m` outcomes of a batch.
        lower: lower corners of free cells, `... x c x m`, broadcast against those of `f`.
        upper: upper corners.

    Returns:
        `...`.
    """
    q = f.shape[-2]
    total = f.new_zeros(())
    for size in range(1, q + 1):
        subsets = torch.tensor(list(combinations(range(q), size)))
        # The componentwise minimum is the greatest point that all points of the subset dominate.
        overlap = f[..., subsets, :].amin(dim=-2)
        sides = torch.minimum(overlap.unsqueeze(-3), upper.unsqueeze(-2)) - lower.unsqueeze(-2)
        volume = sides.clamp_min(0.0).prod(dim=-1).sum(dim=(-2, -1))
        total = total + (-1) ** (size + 1) * volume
    return total
