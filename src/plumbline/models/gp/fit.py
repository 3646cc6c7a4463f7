"""Fitting of GPs by (penalised) marginal likelihood."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, Self

import numpy as np
import torch
from botorch.exceptions.errors import ModelFittingError
from pydantic import PositiveFloat, model_validator
from torch import Tensor

from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.models.algebra import Kernel
from plumbline.models.gp.likelihood import NOTHING_KNOWN, DataSets
from plumbline.models.gp.maximum import Maximum, Start, Unknowns, hyperparameters, maximise
from plumbline.models.gp.priors import Gamma, Hyperparameter, LogNormal
from plumbline.models.gp.process import GP
from plumbline.models.standardisation import Standardisation, standardisation_of

NOISE_FLOOR = 1e-6
"""Least noise variance under maximum likelihood, in units of the variance of the observations."""

KNOWN_NOISE_FLOOR = 1e-8
"""Least value of known noise variances, in the same units.

GPyTorch's 1e-6 would blur the last digits of a noise-free optimum: on Branin, differences of 0.05.
"""

ELEMENTS = 2**17
"""Greatest number of elements of the covariances that are fitted together: more exceed the processor's cache."""

FIRST_STEP = 0.1
"""Greatest change of a hyperparameter's natural logarithm in the first step of a fit with priors."""

FIRST_STEP_WITHOUT_PRIORS = 0.3
"""The same under maximum likelihood, which from small steps may end at a lengthscale below all distances."""


class ModelOptions(Options):
    """Options of a GP.

    Attributes:
        kernel: the squared exponential, or Matern-1/2, -3/2 or -5/2.
        priors: `botorch`: its dimension-scaled log-normal priors and unit output scale. `botorch-0.9`: its defaults
            before version 0.12, Gamma(3, 6) on lengthscales, Gamma(2, 0.15) on the output scale, Gamma(1.1, 0.05) on
            the noise variance. `conformal`: the first two of these, noise variance in [5e-4, 0.5] (CBO, appendix D).
            `none`: maximum likelihood.
        outputscale: of BoTorch's priors, `unit`: one, as there, or `fitted`, under a log-normal(0, 1) prior.
        ard: whether each input has its own lengthscale.
        lengthscale: a known lengthscale, which is not fitted: for well-specified models.
        inputs: unit of lengthscales and their priors: sides of the problem's box, or the problem's own units.
    """

    kernel: Kernel = "matern52"
    priors: Literal["botorch", "botorch-0.9", "conformal", "none"] = "botorch"
    outputscale: Literal["unit", "fitted"] = "unit"
    ard: bool = True
    lengthscale: PositiveFloat | None = None
    inputs: Literal["cube", "raw"] = "cube"

    @model_validator(mode="after")
    def _options_fit_the_priors(self) -> Self:
        if self.priors == "botorch" and not self.ard:
            raise ValueError("BoTorch's dimension-scaled priors need `ard: true`; take `priors: none` or `conformal`")
        if self.priors != "botorch" and self.outputscale != "unit":
            raise ValueError("`outputscale` belongs to `priors: botorch`; all other priors have a fitted one")
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
        noise: known noise variances, standardised: `n`, or one for all observations, `1`; None if one is fitted.
    """
    inputs = dim if options.ard else 1
    unit = FIRST_STEP
    if options.priors == "botorch":
        # Hvarfner, Hellsten & Nardi (2024), as in BoTorch.
        prior, of_noise = LogNormal(math.sqrt(2) + 0.5 * math.log(dim), math.sqrt(3)), LogNormal(-4.0, 1.0)
        lengthscale = Hyperparameter(inputs, prior.mode, prior, low=0.025)
        outputscale = Hyperparameter(int(options.outputscale == "fitted"), 1.0, LogNormal(0.0, 1.0))
        variance = Hyperparameter(1, of_noise.mode, of_noise, low=1e-4)
    elif options.priors in ("conformal", "botorch-0.9"):
        lengthscale = Hyperparameter(inputs, math.log(2), Gamma(3, 6.0))
        outputscale = Hyperparameter(1, math.log(2), Gamma(2, 0.15))
        variance = Hyperparameter(1, 1e-2, low=5e-4, high=0.5)
        if options.priors == "botorch-0.9":
            loud = Gamma(1.1, 0.05)
            variance = Hyperparameter(1, loud.mode, loud, low=1e-4)
    else:
        lengthscale = Hyperparameter(inputs, math.log(2))
        outputscale = Hyperparameter(1, math.log(2))
        variance = Hyperparameter(1, 1e-2, low=NOISE_FLOOR)
        unit = FIRST_STEP_WITHOUT_PRIORS
    if options.lengthscale is not None:
        lengthscale = replace(lengthscale, size=0)
    if noise is not None:
        variance = replace(variance, size=0)
    known = NOTHING_KNOWN
    if options.lengthscale is not None:
        known = known._replace(lengthscale=torch.full((inputs,), options.lengthscale, dtype=torch.float64))
    if noise is not None:
        known = known._replace(noise=noise.clamp_min(KNOWN_NOISE_FLOOR))
    return Unknowns(variance, outputscale, lengthscale, known, unit=unit)


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
        variance: known noise variances, `n`, or one for all observations, `1`; None if one is fitted.
        standardisation: transforms of inputs and observations; None for the box of the options, and mean zero and
            variance one.

    Raises:
        botorch.exceptions.ModelFittingError: the likelihood is NaN or infinite at the end of every attempt.
        PlumblineError: observations too large or too small to be squared.
    """
    standardisation = standardisation or standardisation_of(options.box(bounds), Y[:, 0])
    unknowns = unknowns_of(X.shape[-1], options, None if variance is None else variance / standardisation.scale**2)
    data = standardised(X, Y, standardisation)
    return fitted(data, options.kernel, unknowns)


def fit_each(
    X: Tensor,
    Y: Tensor,
    bounds: Tensor,
    options: ModelOptions,
    variance: Tensor | None = None,
    near: GP | None = None,
    without_warning: bool = False,
) -> list[GP | None]:
    """Return the `fit_process` of each of m data sets of one size, together: several times faster for small ones.

    None where the likelihood is NaN or infinite at the end of every attempt, and, if asked for, where `fit_process`
    would warn.

    Args:
        X: `m x n x d`, in the problem's bounds.
        Y: `m x n x 1`.
        bounds: `2 x d`.
        options: kernel and priors.
        variance: a known noise variance of all observations, `1`, in units of each data set's variance; None if it is
            fitted.
        near: a process fitted in the same way to data that hardly differ: fits start at its hyperparameters, which
            halves their evaluations. None for the usual start, with the numbers of `fit_process` to the last bit.
        without_warning: whether to return only fits whose optimiser converged at its first attempt.
    """
    box = options.box(bounds)
    standardisations = [standardisation_of(box, y) for y in Y[..., 0]]
    U = standardisations[0].inputs(X) if len(X) else X
    data = [
        StandardisedData(u, unit.outputs(y), unit) for u, y, unit in zip(U, Y[..., 0], standardisations, strict=True)
    ]
    unknowns, size = unknowns_of(X.shape[-1], options, variance), max(1, ELEMENTS // X.shape[1] ** 2)
    start = None if near is None else unknowns.near(near.at, data_sets([near], unknowns), options.kernel)
    parts = [data[first : first + size] for first in range(0, len(data), size)]
    fits = [fitted_each(part, options.kernel, unknowns, start, without_warning) for part in parts]
    return [process for part in fits for process in part]


def fit_outcomes(data: History, bounds: Tensor, options: ModelOptions) -> list[GP]:
    """Return a GP per outcome, each fitted to the points where that outcome was observed; see `fit_process`."""
    observed = torch.isfinite(data.Y).unbind(-1)
    return [
        fit_process(data.X[there], y[there], bounds, options)
        for there, y in zip(observed, data.Y.split(1, dim=-1), strict=True)
    ]


class StandardisedData(NamedTuple):
    """Standardised data of a GP.

    Attributes:
        U: `n x d`.
        y: `n`.
        standardisation: transforms of inputs and observations.
    """

    U: Tensor
    y: Tensor
    standardisation: Standardisation


def standardised(X: Tensor, Y: Tensor, standardisation: Standardisation) -> StandardisedData:
    """Return data, `n x d` and `n x 1`, standardised."""
    return StandardisedData(standardisation.inputs(X), standardisation.outputs(Y[:, 0]), standardisation)


def fitted(data: StandardisedData, kernel: Kernel, unknowns: Unknowns) -> GP:
    """Return the GP of standardised data with its unknown hyperparameters at a maximum; see `fit_process`.

    Raises:
        botorch.exceptions.ModelFittingError: the likelihood is NaN or infinite at the end of every attempt.
    """
    (process,) = fitted_each([data], kernel, unknowns)
    if process is None:
        raise ModelFittingError("the marginal likelihood is NaN or infinite from each of the optimiser's starts")
    return process


def data_sets(data: Sequence[StandardisedData | GP], unknowns: Unknowns) -> DataSets:
    """Return standardised data of one size, or that of processes, as data sets."""
    U, y = np.stack([one.U.numpy() for one in data]), np.stack([one.y.numpy() for one in data])
    return DataSets(U, y, None if unknowns.constant else 0.0)


def fitted_each(
    data: Sequence[StandardisedData],
    kernel: Kernel,
    unknowns: Unknowns,
    near: Start | None = None,
    without_warning: bool = False,
) -> list[GP | None]:
    """Return the GPs of m standardised data sets of one size; see `fit_each`.

    Fits start near there where a start is given.
    """
    sets = data_sets(data, unknowns)
    maxima = maximise(lambda at, rows: unknowns.penalised(at, sets.only(rows), kernel), unknowns, len(data), near)
    if without_warning:
        maxima = [Maximum() if maximum.failed else maximum for maximum in maxima]
    for message in [message for maximum in maxima for message in maximum.failed]:
        warnings.warn(f"hyperparameters: {message}", FitStoppedEarlyWarning, stacklevel=4)
    processes: list[GP | None] = [None] * len(data)
    found = {i: maximum.coordinates for i, maximum in enumerate(maxima) if maximum.coordinates is not None}
    if found:
        at = unknowns.covariances(np.stack(list(found.values())))
        constants = sets.only(list(found)).constants(at, kernel)
        for i, values in zip(found, hyperparameters(at, constants.tolist()), strict=True):
            one = data[i]
            processes[i] = GP(one.U, one.y, one.standardisation, kernel, values)
    return processes
