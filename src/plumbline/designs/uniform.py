"""Independent uniform points."""

import torch
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.designs.base import designs, refuse_more_than
from plumbline.problems.base import Problem


@designs.register("uniform", Options)
def uniform_design(problem: Problem, n: int, generator: Generator, options: Options) -> Tensor:
    """Independent uniform points; of a table, rows without replacement."""
    refuse_more_than(problem.space, n)
    nothing = torch.empty(0, problem.space.dim, dtype=problem.bounds.dtype)
    return problem.space.draw(n, History(nothing, nothing), generator)
