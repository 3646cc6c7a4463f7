"""Constrained problems: the Branin function of the slides of BO in practice (BOWH-4), and Gramacy's function."""

import math
from dataclasses import replace

import torch
from botorch.test_functions import synthetic
from botorch.test_functions.synthetic import Branin, ConstrainedSyntheticTestFunction
from torch import Tensor

from plumbline.core.options import Options
from plumbline.problems.base import Context, Problem, problems
from plumbline.problems.build import problem_of

PERIOD, MIDDLE = 0.336, 0.483
"""Distance between the feasible bands, and the middle of the second."""

THRESHOLD = (0.75, 0.93, -0.21, 0.22, -0.27, 0.01, 0.18, -0.13)
"""Coefficients of `cos(k pi x1)`, k = 0, 1, ..., in the threshold of the wave; fitted to widths read off the figure."""

NARROWING = 0.058
"""Increase of the threshold in the middle band, and decrease in the others."""


class ConstrainedBranin(ConstrainedSyntheticTestFunction):
    """Branin's function with a slope on [0, 1]^2, an inequality with feasible bands, and an equality on a parabola.

    It is a reconstruction, since the slides print no formula. We fitted both constraints to their figure (page 68): the
    parabola to within the line's width, the bands to within .007 of the edges. With `u = (15 x1 - 5, 15 x2)`:

    * the objective, to be minimised, is Branin's function plus `5 u1`, the modification by Forrester, Sobester & Keane
      (2008). Its minimum along the parabola is at (.5065, .1827), and the figure marks (.507, .183). The minimum of
      Branin's own function is at (.513, .146).
    * inequality: `cos(w) - .058 cos(w / 2) >= t(x1)`, with `w = 2 pi (x2 - .483) / .336` and a cosine series `t`: bands
      around x2 = .147, .483 and .819, which begin near x1 = .42 and whose middle one is closed from .65 to .706.
    * equality: `x2 = 20 (x1 - .65)^2 - .229`.

    The constraints are of order one.
    """

    dim = 2
    num_objectives = 1
    num_constraints = 2
    continuous_inds = [0, 1]  # noqa: RUF012 - BoTorch's class attributes
    _bounds = [(0.0, 1.0), (0.0, 1.0)]  # noqa: RUF012
    _optimizers = [(0.5065241016768652, 0.1827066679926106)]  # noqa: RUF012
    _optimal_value = 14.77198072286467

    def __init__(self, negate: bool = False) -> None:
        super().__init__(negate=negate)
        self.branin = Branin()

    def _evaluate_true(self, X: Tensor) -> Tensor:
        low, high = self.branin.bounds
        u = low + (high - low) * X
        return self.branin(u, noise=False) + 5 * u[..., 0]

    def _evaluate_slack_true(self, X: Tensor) -> Tensor:
        x1, x2 = X.unbind(-1)
        wave = 2 * math.pi * (x2 - MIDDLE) / PERIOD
        threshold = torch.stack([c * torch.cos(k * math.pi * x1) for k, c in enumerate(THRESHOLD)]).sum(0)
        bands = torch.cos(wave) - NARROWING * torch.cos(wave / 2) - threshold
        return torch.stack([bands, x2 - 20 * (x1 - 0.65) ** 2 + 0.229], -1)


@problems.register("constrained-branin", Options, "2-d, one equality and one inequality of three bands")
def constrained_branin(options: Options, _: Context) -> Problem:
    """Return the constrained Branin function, to be maximised and without noise, which the slides do not mention."""
    problem = problem_of(ConstrainedBranin(negate=True))
    objective, bands, parabola = problem.outcomes
    named = (objective, replace(bands, name="bands"), replace(parabola, name="parabola", role="zero"))
    return replace(problem, outcomes=named)


class ConstrainedGramacy(synthetic.ConstrainedGramacy):
    """BoTorch's constrained function of Gramacy et al. (2016), with its minimum to full precision for small regrets.

    The minimiser is by 1e-14 inside of the wave, and the minimum rounded down: regret is never negative.
    """

    _optimizers = [(0.1951226834720718, 0.4046653685380058)]  # noqa: RUF012
    _optimal_value = 0.59978805201006


@problems.register("constrained-gramacy", Options, "2-d, a plane in a region that two constraints cut out")
def constrained_gramacy(options: Options, _: Context) -> Problem:
    """Return Gramacy's problem, to be maximised and without noise: only the first constraint, a wave, is active."""
    problem = problem_of(ConstrainedGramacy(negate=True))
    objective, wave, disc = problem.outcomes
    return replace(problem, outcomes=(objective, replace(wave, name="wave"), replace(disc, name="disc")))
