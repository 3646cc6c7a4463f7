"""The worst rows of a table."""

from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options
from plumbline.designs.base import designs, refuse_more_than
from plumbline.problems.base import Problem
from plumbline.spaces.table import Table


def worst(rows: Tensor, values: Tensor, n: int) -> Tensor:
    """Return the `n x d` rows of lowest value; CBO, appendix C.3."""
    return rows[values.argsort(stable=True)[:n]]


@designs.register("worst", Options)
def worst_design(problem: Problem, n: int, generator: Generator, options: Options) -> Tensor:
    """The rows of a table with the lowest values.

    Raises:
        PlumblineError: the problem is not over a table, or the table has fewer than `n` rows.
    """
    if not isinstance(problem.space, Table):
        raise PlumblineError("initial design 'worst' needs a table of known values: use it with tabular problems")
    rows = problem.space.rows
    refuse_more_than(problem.space, n)
    return worst(rows, problem.function(rows, noise=False), n)
