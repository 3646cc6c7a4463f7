"""Uniform points in a part of the box, or outside it, as in the published script of CBO's figure 6."""

from typing import Self

import torch
from pydantic import model_validator
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options
from plumbline.designs.base import box_of, designs
from plumbline.designs.uniform_outside import refuse_most_of_the_box
from plumbline.problems.base import Problem
from plumbline.spaces.search import inside


class PartOptions(Options):
    """Options of the design.

    Attributes:
        low, high: ends of the part along every axis, in the problem's own units.
        outside: whether points lie outside the part, along at least one axis, instead of in it.
    """

    low: float
    high: float
    outside: bool = False

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"a part from {self.low} to {self.high}: `low` must be less than `high`")
        return self


def part_of(bounds: Tensor, n: int, generator: Generator, options: PartOptions) -> Tensor:
    """Return `n x d` uniform points of the box `bounds` (`2 x d`) in a part of it, or outside that part.

    Raises:
        PlumblineError: the part is not in the box, or what is left outside it is less than 1%.
    """
    part = torch.tensor([[options.low], [options.high]], dtype=bounds.dtype).expand_as(bounds)
    if not bool(inside(part, bounds).all()):
        raise PlumblineError(f"initial design 'part': [{options.low}, {options.high}] must lie inside the box")
    if options.outside:
        refuse_most_of_the_box("part", bounds, part)
    region = bounds if options.outside else part
    found = bounds.new_empty(0, bounds.shape[1])
    while len(found) < n:
        X = torch.lerp(region[0], region[1], torch.rand(n, bounds.shape[1], generator=generator, dtype=bounds.dtype))
        found = torch.cat([found, X[inside(X, part) != options.outside]])
    return found[:n]


@designs.register("part", PartOptions)
def part_design(problem: Problem, n: int, generator: Generator, options: PartOptions) -> Tensor:
    """Uniform points in a part of the box, or outside it."""
    return part_of(box_of(problem, "part"), n, generator, options)
