"""Independent uniform points of a box outside a region: an initial design without data in that region."""

import math
from typing import Self

import torch
from pydantic import model_validator
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options
from plumbline.designs.base import box_of, designs
from plumbline.problems.base import Problem
from plumbline.spaces.box import uniform
from plumbline.spaces.search import inside

LEAST_SHARE = 0.01
"""Least share of the box outside the region: below it, almost all draws would be rejected."""


class OutsideOptions(Options):
    """Options of uniform points outside a region.

    Attributes:
        region: its lower and its upper corner, in the problem's bounds; its faces belong to it.
    """

    region: tuple[tuple[float, ...], tuple[float, ...]]

    @model_validator(mode="after")
    def _corners_are_lower_and_upper(self) -> Self:
        low, high = self.region
        if len(low) != len(high) or any(a > b for a, b in zip(low, high, strict=True)):
            raise ValueError(f"region: a lower and an upper corner are expected: {[list(low), list(high)]}")
        return self


def uniform_outside(bounds: Tensor, region: Tensor, n: int, generator: Generator) -> Tensor:
    """Return `n x d` independent uniform points of the box `bounds` that are not in `region` (both `2 x d`).

    Uniform draws inside the region are rejected. If none of the first `n` is, the points equal the uniform design.
    """
    X = torch.empty(0, bounds.shape[1], dtype=bounds.dtype)
    while len(X) < n:
        drawn = uniform(bounds, n, generator)
        X = torch.cat([X, drawn[~inside(drawn, region)]])
    return X[:n]


def refuse_most_of_the_box(design: str, bounds: Tensor, region: Tensor) -> None:
    """Raise PlumblineError if a region (`2 x d`) leaves less than `LEAST_SHARE` of a box."""
    shared = (torch.minimum(region[1], bounds[1]) - torch.maximum(region[0], bounds[0])).clamp_min(0.0)
    if math.prod((shared / (bounds[1] - bounds[0])).tolist()) > 1 - LEAST_SHARE:
        raise PlumblineError(f"initial design {design!r}: the region leaves less than 1% of the box: shrink it")


@designs.register("uniform-outside", OutsideOptions)
def uniform_outside_design(problem: Problem, n: int, generator: Generator, options: OutsideOptions) -> Tensor:
    """Independent uniform points of the box outside a region.

    Raises:
        PlumblineError: the problem is not over a box, the region has another number of inputs, or it leaves less than
            `LEAST_SHARE` of the box.
    """
    bounds = box_of(problem, "uniform-outside")
    region = torch.tensor(options.region, dtype=bounds.dtype)
    if region.shape != bounds.shape:
        raise PlumblineError(
            f"initial design 'uniform-outside': a region of {region.shape[1]} inputs in a box of {bounds.shape[1]}"
        )
    refuse_most_of_the_box("uniform-outside", bounds, region)
    return uniform_outside(bounds, region, n, generator)
