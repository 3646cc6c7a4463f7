"""Points in one random orthant of the box, as in conformal Bayesian optimisation (CBO)."""

import torch
from torch import Generator, Tensor

from plumbline.core.options import Options
from plumbline.designs.base import box_of, designs
from plumbline.designs.sobol import sobol
from plumbline.problems.base import Problem


def random_orthant(bounds: Tensor, n: int, generator: Generator) -> Tensor:
    """Return `n x d` Sobol points in one random orthant of the box `bounds` (`2 x d`); CBO, appendix D.

    An orthant is one of the 2^d boxes into which the centre divides the box. The data lie in one corner, and the
    optimiser must leave it: this is the covariate shift that the paper studies.
    """
    upper_half = torch.rand(bounds.shape[1], generator=generator) < 0.5
    centre = bounds.mean(dim=0)
    orthant = torch.stack([torch.where(upper_half, centre, bounds[0]), torch.where(upper_half, bounds[1], centre)])
    return sobol(orthant, n, generator)


@designs.register("random-orthant", Options)
def random_orthant_design(problem: Problem, n: int, generator: Generator, options: Options) -> Tensor:
    """Sobol points in one random orthant of the box."""
    return random_orthant(box_of(problem, "random-orthant"), n, generator)
