"""Points in two opposite corners of the box: the published code of LOCBO begins there."""

import torch
from torch import Generator, Tensor

from plumbline.core.options import Options
from plumbline.designs.base import box_of, designs
from plumbline.problems.base import Problem

CORNER = 0.4
"""Share of every axis that a corner takes."""


def two_corners(bounds: Tensor, n: int, generator: Generator) -> Tensor:
    """Return `n x d` points in two opposite corners of the box `bounds` (`2 x d`), each in either with even chance.

    All inputs of a point lie in the lower 40 % of their axes, or all in the upper 40 %: on [-10, 10]^2 it is in
    [-10, -2]^2 or in [2, 10]^2, where the published code of LOCBO begins. The middle of the box is left out, and with
    it the optimum of many a test function.
    """
    # One draw a point for its side, and one an input: a longer design begins with the points of a shorter one.
    chance = torch.rand(n, bounds.shape[1] + 1, generator=generator, dtype=bounds.dtype)
    upper = (chance[:, :1] < 0.5).to(bounds.dtype)
    unit = CORNER * chance[:, 1:] + (1 - CORNER) * upper
    # A weighted mean of the ends, which rounding keeps within them where the sum of one end and the rest may not be.
    return torch.lerp(bounds[0], bounds[1], unit)


@designs.register("two-corners", Options)
def two_corners_design(problem: Problem, n: int, generator: Generator, options: Options) -> Tensor:
    """Points in two opposite corners of the box."""
    return two_corners(box_of(problem, "two-corners"), n, generator)
