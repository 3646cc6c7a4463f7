"""Examples of a problem that are known before any evaluation."""

from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options
from plumbline.designs.base import designs
from plumbline.problems.base import Problem


@designs.register("examples", Options)
def examples_design(problem: Problem, n: int, generator: Generator, options: Options) -> Tensor:
    """Random known examples of the problem, such as molecules that its model has encoded.

    Raises:
        PlumblineError: the problem has no examples, or fewer than `n`.
    """
    if problem.examples is None:
        raise PlumblineError("initial design 'examples' needs a problem that has examples: guacamol with `molecules`")
    return problem.examples(n, generator)
