"""Fitting of GPs by (penalised) marginal likelihood."""

import math
import warnings
from dataclasses import replace
from functools import partial
from typing import Literal, Self

import numpy as np
import torch
from pydantic import PositiveFloat, model_validator
from torch import Tensor

from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.models.algebra import Kernel
from plumbline.models.gp.batched_likelihood import ELEMENTS, maximise_each, stack_of
from plumbline.models.gp.likelihood import NOTHING_KNOWN, Sample, Unknowns, maximise
from plumbline.models.gp.priors import Array, Between, Bounded, Gamma, Hyperparameter, LogNormal, Softplus
from plumbline.models.gp.process import GP
from plumbline.models.standardisation import Standardisation, standardisation_of

NOISE_FLOOR = 1e-6
"""Least noise variance under maximum likelihood, in units of the variance of the observations."""

KNOWN_NOISE_FLOOR = 1e-6
"""Least value of known noise variances, in the same units; as in GPyTorch."""


class ModelOptions(Options):
    """Options of a GP.

    Attributes:
        kernel: the squared exponential, or Matern-1/2, -3/2 or -5/2.
        priors: `botorch`: its dimension-scaled log-normal priors and unit output scale. `botorch-0.9`: its defaults
            before version 0.12, Gamma(3, 6) on lengthscales, Gamma(2, 0.15) on the output scale, Gamma(1.1, 0.05) on
            the noise variance. `conformal`: the first two of these, noise variance in [5e-4, 0.5] (CBO, appendix D).
            `none`: maximum likelihood.
        ard: whether each input has its own lengthscale.
        lengthscale: a known lengthscale, which is not fitted: for well-specified models.
        inputs: unit of lengthscales and their priors: sides of the problem's box, or the problem's own units.
    """

    kernel: Kernel = "matern52"
    priors: Literal["botorch", "botorch-0.9", "conformal", "none"] = "botorch"
    ard: bool = True
    lengthscale: PositiveFloat | None = None
    inputs: Literal["cube", "raw"] = "cube"

    @model_validator(mode="after")
    def _botorch_priors_are_ard(self) -> Self:
        if self.priors == "botorch" and not self.ard:
            raise ValueError("BoTorch's dimension-scaled priors need `ard: true`; take `priors: none` or `conformal`")
        return self

    def box(self, bounds: Tensor) -> Tensor:
        """Return the box in whose sides lengthscales are measured, `2 x d`: the problem's, or one of unit sides."""
        return (
            bounds if self.inputs == "cube" else torch.stack([torch.zeros_like(bounds[0]), torch.ones_like(bounds[0])])
        )


def unknowns_of(dim: int, options: ModelOptions, noise: Tensor | None = None) -> Unknowns:
    """Return the unknown hyperparameters of a GP over the unit cube of dimension `dim`.

    Args:
        dim: `d`.
        options: kernel and priors.
        noise: `n` known noise variances, standardised; None if one noise variance is fitted.
    """
    inputs = dim if options.ard else 1
    if options.priors == "botorch":
        # Hvarfner, Hellsten & Nardi (2024), as in BoTorch.
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


class FitStoppedEarlyWarning(RuntimeWarning):
    """The optimiser of the hyperparameters stopped without convergence and restarted elsewhere."""


def fit_process(
    X: Tensor,
    Y: Tensor,
    bounds: Tensor,
    options: ModelOptions,
    variance: Tensor | None = None,
    standardisation: Standardisation | None = None,
) -> GP:
    """Return a GP with hyperparameters at a (penalised) maximum of the marginal likelihood.

    Args:
        X: `n x d`, in the problem's bounds.
        Y: `n x 1`.
        bounds: `2 x d`.
        options: kernel and priors.
        variance: `n` known noise variances; None if one noise variance is fitted.
        standardisation: transforms of inputs and observations; None for the box of the options, and mean zero and
            variance one.

    Raises:
        botorch.exceptions.ModelFittingError: the likelihood is NaN or infinite at the end of every attempt.
    """
    standardisation = standardisation or standardisation_of(options.box(bounds), Y[:, 0])
    sample = Sample(standardisation.inputs(X), standardisation.outputs(Y[:, 0]))
    unknowns = unknowns_of(X.shape[-1], options, None if variance is None else variance / standardisation.scale**2)
    return fitted(sample, options.kernel, unknowns, standardisation)


def fit_each(X: Tensor, Y: Tensor, bounds: Tensor, options: ModelOptions) -> list[GP | None]:
    """Return the `fit_process` of each of m data sets of one size, batched: several times faster for small ones.

    None where the optimiser does not converge from its first start, where `fit_process` would restart.

    Args:
        X: `m x n x d`, in the problem's bounds.
        Y: `m x n x 1`.
        bounds: `2 x d`.
        options: kernel and priors.
    """
    standardisation = [standardisation_of(options.box(bounds), y[:, 0]) for y in Y]
    samples = [Sample(unit.inputs(x), unit.outputs(y[:, 0])) for unit, x, y in zip(standardisation, X, Y, strict=True)]
    unknowns = unknowns_of(X.shape[-1], options)
    size = max(1, ELEMENTS // X.shape[1] ** 2)
    maxima: list[Array | None] = []
    with torch.inference_mode():
        for first in range(0, len(samples), size):
            maxima += maximise_each(unknowns, stack_of(samples[first : first + size]), options.kernel)
    return [
        None if raw is None else GP(sample.X, sample.y, unit, options.kernel, unknowns.values(raw))
        for raw, sample, unit in zip(maxima, samples, standardisation, strict=True)
    ]


def fit_outcomes(data: History, bounds: Tensor, options: ModelOptions) -> list[GP]:
    """Return a GP per outcome, each fitted to the points where that outcome was observed; see `fit_process`."""
    observed = torch.isfinite(data.Y).unbind(-1)
    return [
        fit_process(data.X[there], y[there], bounds, options)
        for there, y in zip(observed, data.Y.split(1, dim=-1), strict=True)
    ]


def fitted(sample: Sample, kernel: Kernel, unknowns: Unknowns, standardisation: Standardisation) -> GP:
    """Return the GP of data in the unit cube with its unknown hyperparameters at a maximum; see `fit_process`."""
    objective = partial(unknowns.penalised, sample=sample, kernel=kernel)
    with torch.inference_mode():
        raw, failed = maximise(objective, unknowns, np.random.default_rng(0))
    for message in failed:
        warnings.warn(f"hyperparameters: {message}", FitStoppedEarlyWarning, stacklevel=3)
    return GP(sample.X, sample.y, standardisation, kernel, unknowns.values(raw))
