"""Draws from the training distribution of a problem with covariate shift."""

from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options
from plumbline.designs.base import designs
from plumbline.problems.base import Problem


@designs.register("source", Options)
def source_design(problem: Problem, n: int, generator: Generator, options: Options) -> Tensor:
    """Draws from the training distribution of a problem with covariate shift.

    Raises:
        PlumblineError: the problem has no covariate shift.
    """
    if problem.shift is None:
        raise PlumblineError("initial design 'source' needs a problem with covariate shift, such as hartmann3-shift")
    return problem.shift.source(n, generator)
