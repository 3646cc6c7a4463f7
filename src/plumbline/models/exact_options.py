"""Options of exact Gaussian processes, and what is fitted under them."""

import math
from dataclasses import replace
from typing import Literal, Self

import torch
from pydantic import PositiveFloat, model_validator
from torch import Tensor

from plumbline.models.marginal_likelihood import NOTHING_KNOWN, Unknowns
from plumbline.models.priors import Between, Bounded, Gamma, Hyperparameter, LogNormal, Softplus
from plumbline.models.whitened import Kernel
from plumbline.options import Options

NOISE_FLOOR = 1e-6
"""Least noise variance under maximum likelihood, in units of the variance of the observations."""

KNOWN_NOISE_FLOOR = 1e-6
"""Least noise variance that is given, likewise; GPyTorch's."""


class ModelOptions(Options):
    """Options of an exact Gaussian process.

    Attributes:
        kernel: the squared exponential, or Matern-1/2, -3/2 or -5/2.
        priors: `botorch`: its dimension-scaled log-normal priors and unit output scale. `botorch-0.9`: its defaults
            before version 0.12, Gamma(3, 6) on lengthscales, Gamma(2, 0.15) on the output scale, Gamma(1.1, 0.05) on
            the noise variance. `conformal`: the first two of these, noise variance in [5e-4, 0.5] (CBO, appendix D).
            `none`: maximum likelihood.
        ard: one lengthscale an input, or one for all.
        lengthscale: a known one, which is then not fitted: for well-specified models.
        inputs: what lengthscales and their priors are measured in: sides of the problem's box, or its own units.
    """

    kernel: Kernel = "matern52"
    priors: Literal["botorch", "botorch-0.9", "conformal", "none"] = "botorch"
    ard: bool = True
    lengthscale: PositiveFloat | None = None
    inputs: Literal["cube", "raw"] = "cube"

    @model_validator(mode="after")
    def _botorch_priors_are_ard(self) -> Self:
        if self.priors == "botorch" and not self.ard:
            raise ValueError(
                "BoTorch's dimension-scaled priors are for `ard: true`; take `priors: none` or `conformal`"
            )
        return self

    def box(self, bounds: Tensor) -> Tensor:
        """Return the box whose sides lengthscales are measured in, `2 x d`: the problem's, or one of unit sides."""
        return (
            bounds if self.inputs == "cube" else torch.stack([torch.zeros_like(bounds[0]), torch.ones_like(bounds[0])])
        )


def unknowns_of(dim: int, options: ModelOptions, noise: Tensor | None = None) -> Unknowns:
    """Return what is fitted of a process over the unit cube of dimension `dim`.

    Args:
        dim: `d`.
        options: kernel and priors.
        noise: `n` known variances of the observations, standardised; None where one is fitted.
    """
    inputs = dim if options.ard else 1
    if options.priors == "botorch":
        # Hvarfner, Hellsten & Nardi (2024), as BoTorch has them.
        prior, of_noise = LogNormal(math.sqrt(2) + 0.5 * math.log(dim), math.sqrt(3)), LogNormal(-4.0, 1.0)
        lengthscale = Hyperparameter(inputs, Bounded(0.025), prior.mode, prior)
        outputscale = Hyperparameter(0, Softplus(), 1.0)
        variance = Hyperparameter(1, Bounded(1e-4), of_noise.mode, of_noise)
    elif options.priors in ("conformal", "botorch-0.9"):
        lengthscale = Hyperparameter(inputs, Softplus(), math.log(2), Gamma(3, 6.0))
        outputscale = Hyperparameter(1, Softplus(), math.log(2), Gamma(2, 0.15))
        variance = Hyperparameter(1, Between(5e-4, 0.5), 1e-2)
        if options.priors == "botorch-0.9":
            loud = Gamma(1.1, 0.05)
            variance = Hyperparameter(1, Bounded(1e-4), loud.mode, loud)
    else:
        lengthscale = Hyperparameter(inputs, Softplus(), math.log(2))
        outputscale = Hyperparameter(1, Softplus(), math.log(2))
        variance = Hyperparameter(1, Softplus(NOISE_FLOOR), 1e-2)
    if options.lengthscale is not None:
        lengthscale = replace(lengthscale, size=0)
    if noise is not None:
        variance = replace(variance, size=0)
    known = NOTHING_KNOWN
    if options.lengthscale is not None:
        known = known._replace(lengthscale=torch.full((inputs,), options.lengthscale, dtype=torch.float64))
    if noise is not None:
        known = known._replace(noise=noise.clamp_min(KNOWN_NOISE_FLOOR))
    return Unknowns(variance, outputscale, lengthscale, known)
