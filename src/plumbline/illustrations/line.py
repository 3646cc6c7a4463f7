"""A noisy function of one variable that is smooth where the data are dense and oscillates where they are sparse."""

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.models.gp.process import GP

BOUNDS = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)

MODEL = ModelOptions(priors="conformal")
"""Kernel and priors of the Gaussian process."""


class LineOptions(Options):
    """Options of the data.

    Attributes:
        n: number of observations.
        crowding: inputs are `2 u^crowding - 1` for uniform `u`: dense on the left above 1, uniform at 1.
        noise_std: standard deviation of the observation noise.
    """

    n: PositiveInt = Field(default=27, ge=2)
    crowding: PositiveFloat = 2.0
    noise_std: PositiveFloat = 0.2


def chirp(x: Tensor) -> Tensor:
    """Return `sin(pi (x + 1.5)^2)`, whose wavelength falls from left to right."""
    return torch.sin(torch.pi * (x + 1.5).square())


def observe(options: LineOptions, generator: Generator) -> History:
    """Return noisy observations of the chirp: `n x 1` and `n x 1`."""
    u = torch.rand(options.n, 1, generator=generator, dtype=torch.float64)
    X = 2 * u.pow(options.crowding) - 1
    eps = torch.randn(options.n, 1, generator=generator, dtype=torch.float64)
    return History(X, chirp(X) + options.noise_std * eps)


def fit_line(history: History) -> GP:
    """Return the GP fitted to the observations."""
    return fit_process(history.X, history.Y, BOUNDS, MODEL)
