"""Where a trial begins: initial designs."""

from typing import Literal

import torch
from botorch.test_functions.base import BaseTestProblem
from botorch.utils.sampling import draw_sobol_samples
from torch import Generator, Tensor

from plumbline.errors import PlumblineError
from plumbline.seeding import draw_seed

Design = Literal["uniform", "sobol", "random-orthant", "worst", "source"]


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
        return {"uniform": uniform, "sobol": sobol, "random-orthant": random_orthant}[design](
            problem.bounds, n, generator
        )
    if n > len(candidates):
        raise PlumblineError(f"an initial design of {n} rows from a table of {len(candidates)}: lower `initial.size`")
    if design == "worst":
        return worst(candidates, problem(candidates, noise=False), n)
    if design == "uniform":
        return candidates[torch.randperm(len(candidates), generator=generator)[:n]]
    raise PlumblineError(f"initial design {design!r} fills a box: a tabular problem takes 'worst' or 'uniform'")
