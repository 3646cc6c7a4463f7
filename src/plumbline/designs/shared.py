"""Uniform points that all trials share, as in the published script of LOCBO's radio network."""

from torch import Generator, Tensor

from plumbline.core import seeding
from plumbline.core.options import Options
from plumbline.designs.base import designs
from plumbline.designs.uniform import uniform_design
from plumbline.problems.base import Problem


@designs.register("shared", Options)
def shared_design(problem: Problem, n: int, generator: Generator, options: Options) -> Tensor:
    """Independent uniform points, the same in all trials; of a table, rows without replacement."""
    return uniform_design(problem, n, seeding.generator("shared", 0, "design"), options)
