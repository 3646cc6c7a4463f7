"""Points of a scrambled Sobol sequence."""

from botorch.utils.sampling import draw_sobol_samples
from torch import Generator, Tensor

from plumbline.core.options import Options
from plumbline.core.seeding import draw_seed
from plumbline.designs.base import box_of, designs
from plumbline.problems.base import Problem


def sobol(bounds: Tensor, n: int, generator: Generator) -> Tensor:
    """Return `n x d` scrambled Sobol points in `bounds` (`2 x d`)."""
    return draw_sobol_samples(bounds, n=n, q=1, seed=draw_seed(generator)).squeeze(1)


@designs.register("sobol", Options)
def sobol_design(problem: Problem, n: int, generator: Generator, options: Options) -> Tensor:
    """Scrambled Sobol points in the box."""
    return sobol(box_of(problem, "sobol"), n, generator)
