"""Points in two opposite corners of the box, as in the published code of LOCBO."""

import torch
from torch import Generator, Tensor

from plumbline.core.options import Options
from plumbline.designs.base import box_of, designs
from plumbline.problems.base import Problem

CORNER = 0.4
"""Share of every axis that a corner covers."""


def two_corners(bounds: Tensor, n: int, generator: Generator) -> Tensor:
    """Return `n x d` points in two opposite corners of the box `bounds` (`2 x d`).

    All inputs of a point lie in the lower 40 % of their axes, or all in the upper 40 %. On [-10, 10]^2 it is in
    [-10, -2]^2 or in [2, 10]^2. As in the published code of LOCBO, `n` points are drawn in each corner, and `n` of all
    are taken without replacement: two share a corner with probability `(n - 1) / (2 n - 1)`, and five have only one
    with 2 / 252, where independent points would with 1 / 16. The design excludes the middle of the box, where many test
    functions have their optimum.

    That probability depends on `n`. A longer design therefore cannot extend a shorter one.
    """
    # A draw for its place among all and one for each input of the `2 n` points; half of them are in either corner.
    chance = torch.rand(2 * n, bounds.shape[1] + 1, generator=generator, dtype=bounds.dtype)
    chosen = chance[:, 0].argsort()[:n]
    upper = (chosen >= n).unsqueeze(1).to(bounds.dtype)
    unit = CORNER * chance[chosen, 1:] + (1 - CORNER) * upper
    # A weighted mean of the bounds stays within them after rounding; the sum of a bound and an offset may not.
    return torch.lerp(bounds[0], bounds[1], unit)


@designs.register("two-corners", Options)
def two_corners_design(problem: Problem, n: int, generator: Generator, options: Options) -> Tensor:
    """Points in two opposite corners of the box."""
    return two_corners(box_of(problem, "two-corners"), n, generator)
