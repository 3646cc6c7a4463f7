"""Problems whose training inputs and queries come from two known distributions; CBO, figure 5."""

import math
from dataclasses import dataclass

import torch
from pydantic import Field, NonNegativeFloat
from torch import Generator, Tensor

from plumbline.problems.base import Context, Problem, problems
from plumbline.problems.build import problem_of, with_noise
from plumbline.problems.options import ProblemOptions
from plumbline.problems.synthetic import Hartmann

SPREAD = 0.15
"""Standard deviation of both distributions along every axis. The paper specifies neither it nor the means."""

BOX = (-0.5, 1.5)
"""The interval along every axis. The Hartmann function is defined everywhere and has no higher value outside the unit
cube. One draw in 250 of the Gaussians falls outside, and is evaluated there. The means lie within 0.15 of the centre
along every axis, so the ends of this interval are at least 5.7 standard deviations away."""


@dataclass(frozen=True)
class Shift:
    """Two spherical Gaussians `p = N(m, s^2 I)` and `p' = N(m', s^2 I)`.

    Attributes:
        source_mean: `d`, m.
        target_mean: `d`, m'.
        sd: s, of both.
    """

    source_mean: Tensor
    target_mean: Tensor
    sd: float

    def source(self, n: int, generator: Generator) -> Tensor:
        """Return `n x d` draws from p, the distribution of training inputs."""
        return self._draw(self.source_mean, n, generator)

    def target(self, n: int, generator: Generator) -> Tensor:
        """Return `n x d` draws from p', the distribution of queries."""
        return self._draw(self.target_mean, n, generator)

    def log_ratio(self, X: Tensor) -> Tensor:
        """Return `log p'(x) / p(x)` at `X` (`batch x d`): `batch`. It is linear in x, since the spreads are equal."""
        along = self.target_mean - self.source_mean
        middle = (self.target_mean + self.source_mean) / 2
        return (X - middle) @ along / self.sd**2

    def _draw(self, mean: Tensor, n: int, generator: Generator) -> Tensor:
        return mean + self.sd * torch.randn(n, len(mean), generator=generator, dtype=mean.dtype)


def diagonal_shift(dim: int, distance: float, sd: float = SPREAD) -> Shift:
    """Return two Gaussians with means `distance` apart on the diagonal of the unit cube, symmetric about its centre."""
    half = torch.full((dim,), distance / (2 * math.sqrt(dim)), dtype=torch.float64)
    return Shift(source_mean=0.5 - half, target_mean=0.5 + half, sd=sd)


class ShiftOptions(ProblemOptions):
    """Options of a problem with covariate shift.

    Attributes:
        noise_std: standard deviation of the observation noise; .2236 is the root of the paper's .05.
        shift: distance between the means of the two distributions, 0 for none. Both have standard deviation 0.15. The
            importance weights of n points have an effective sample size of about `n exp(-(shift / 0.15)^2)`.
    """

    noise_std: NonNegativeFloat = 0.2236
    shift: float = Field(default=SPREAD, ge=0.0, le=0.5)


@problems.register("hartmann3-shift", ShiftOptions)
def hartmann3_shift(options: ShiftOptions, _: Context) -> Problem:
    """Hartmann-3 with training inputs from one Gaussian and queries from another."""
    function = with_noise(Hartmann(dim=3, negate=True, bounds=[BOX] * 3), options)
    return problem_of(function, shift=diagonal_shift(3, options.shift))
