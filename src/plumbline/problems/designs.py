"""Where a trial begins: initial designs."""

from typing import Literal

import torch
from botorch.test_functions.base import BaseTestProblem
from botorch.utils.sampling import draw_sobol_samples
from torch import Generator, Tensor

from plumbline.errors import PlumblineError
from plumbline.seeding import draw_seed

Design = Literal["uniform", "sobol", "random-orthant", "two-corners", "worst", "source"]


def uniform(bounds: Tensor, n: int, generator: Generator) -> Tensor:
    """Return `n x d` independent uniform points in `bounds` (`2 x d`)."""
    return bounds[0] + (bounds[1] - bounds[0]) * torch.rand(n, bounds.shape[1], generator=generator, dtype=bounds.dtype)


def sobol(bounds: Tensor, n: int, generator: Generator) -> Tensor:
    """Return `n x d` scrambled Sobol points in `bounds` (`2 x d`)."""
    return draw_sobol_samples(bounds, n=n, q=1, seed=draw_seed(generator)).squeeze(1)


def random_orthant(bounds: Tensor, n: int, generator: Generator) -> Tensor:
    """Return `n x d` Sobol points in one random orthant of the box `bounds` (`2 x d`); CBO, appendix D.

    An orthant is one of the 2^d boxes that the centre of the box cuts it into: the data then lie in one corner and
    the optimiser must leave it, which is the covariate shift that the paper wants to see.
    """
    upper_half = torch.rand(bounds.shape[1], generator=generator) < 0.5
    centre = bounds.mean(dim=0)
    orthant = torch.stack([torch.where(upper_half, centre, bounds[0]), torch.where(upper_half, bounds[1], centre)])
    return sobol(orthant, n, generator)


CORNER = 0.4
"""Share of every axis that a corner of `two_corners` takes."""


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


BOX_DESIGNS = {"uniform": uniform, "sobol": sobol, "random-orthant": random_orthant, "two-corners": two_corners}
"""Designs that fill a box, or some of it."""


def worst(candidates: Tensor, values: Tensor, n: int) -> Tensor:
    """Return the `n x d` candidates of lowest value; CBO, appendix C.3."""
    return candidates[values.argsort(stable=True)[:n]]


def initial_design(design: Design, problem: BaseTestProblem, n: int, generator: Generator) -> Tensor:
    """Return the `n x d` initial points of `problem`, in its own bounds.

    For a tabular problem `uniform` draws rows without replacement. `source` draws from the distribution that a problem
    with covariate shift has its training inputs from.

    Raises:
        PlumblineError: a design that the problem cannot have, or more points than rows.
    """
    if design == "source":
        shift = getattr(problem, "shift", None)
        if shift is None:
            raise PlumblineError(
                "initial design 'source' needs a problem with covariate shift, such as hartmann3-shift"
            )
        return shift.source(n, generator)
    candidates: Tensor | None = getattr(problem, "candidates", None)
    if candidates is None:
        if design == "worst":
            raise PlumblineError("initial design 'worst' needs a table of known values: use it with tabular problems")
        return BOX_DESIGNS[design](problem.bounds, n, generator)
    if n > len(candidates):
        raise PlumblineError(f"an initial design of {n} rows from a table of {len(candidates)}: lower `initial.size`")
    if design == "worst":
        return worst(candidates, problem(candidates, noise=False), n)
    if design == "uniform":
        return candidates[torch.randperm(len(candidates), generator=generator)[:n]]
    raise PlumblineError(f"initial design {design!r} fills a box: a tabular problem takes 'worst' or 'uniform'")
