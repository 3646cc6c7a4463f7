"""The registry of initial designs, and the drawing of one."""

from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options, parse
from plumbline.problems.base import Problem
from plumbline.registry.references import InitialDesign
from plumbline.registry.registry import Registry
from plumbline.spaces.base import Space
from plumbline.spaces.box import Box

designs = Registry("design", "plumbline.designs")
"""Functions of (problem, n, generator, options) that return `n x d` points of the problem."""


def initial_design(wanted: InitialDesign, problem: Problem, generator: Generator) -> Tensor:
    """Return the initial points of `problem`, in its own bounds: `size x d`.

    Raises:
        PlumblineError: the design is unknown, its options are invalid, or it does not suit the problem.
    """
    entry = designs[wanted.design]
    options: Options = parse(entry.options, wanted.options, f"design {wanted.design!r}")
    return entry.build(problem, wanted.size, generator, options)


def box_of(problem: Problem, design: str) -> Tensor:
    """Return the bounds of a problem over a box, `2 x d`.

    Raises:
        PlumblineError: the problem is not over a box; the message has the name of the `design`.
    """
    if not isinstance(problem.space, Box):
        raise PlumblineError(f"initial design {design!r} fills a box: a tabular problem takes 'worst' or 'uniform'")
    return problem.bounds


def refuse_more_than(space: Space, n: int) -> None:
    """Raise PlumblineError where a table has fewer than `n` rows."""
    if n > space.size:
        raise PlumblineError(f"an initial design of {n} rows from a table of {space.size}: lower `initial.size`")
