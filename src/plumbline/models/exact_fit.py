"""How exact Gaussian processes are fitted."""

import warnings
from functools import partial

import numpy as np
import torch
from torch import Tensor

from plumbline.history import History
from plumbline.models.exact_options import ModelOptions, unknowns_of
from plumbline.models.exact_process import ExactProcess
from plumbline.models.likelihood_stack import ELEMENTS, maximise_each, stack_of
from plumbline.models.marginal_likelihood import Sample, Unknowns, maximise
from plumbline.models.priors import Array
from plumbline.models.units import Units, units_of
from plumbline.models.whitened import Kernel


class FitStoppedEarlyWarning(RuntimeWarning):
    """An optimiser of hyperparameters ended without having converged, and began anew elsewhere."""


def fit_process(
    X: Tensor,
    Y: Tensor,
    bounds: Tensor,
    options: ModelOptions,
    variance: Tensor | None = None,
    units: Units | None = None,
) -> ExactProcess:
    """Return a process with hyperparameters at a (penalised) maximum of the marginal likelihood.

    Args:
        X: `n x d`, in the problem's bounds.
        Y: `n x 1`.
        bounds: `2 x d`.
        options: kernel and priors.
        variance: `n` known noise variances; None where one for all is fitted.
        units: of inputs and observations; None for those of the options, and mean zero and variance one.

    Raises:
        botorch.exceptions.ModelFittingError: no attempt of the optimiser came to a number.
    """
    units = units or units_of(options.box(bounds), Y[:, 0])
    sample = Sample(units.inputs(X), units.outputs(Y[:, 0]))
    unknowns = unknowns_of(X.shape[-1], options, None if variance is None else variance / units.scale**2)
    return fitted(sample, options.kernel, unknowns, units)


def fit_each(X: Tensor, Y: Tensor, bounds: Tensor, options: ModelOptions) -> list[ExactProcess | None]:
    """Return what `fit_process` makes of each of m data sets of one size, at once: several times faster for small ones.

    None where the optimiser does not converge from its first start, and `fit_process` would begin anew.

    Args:
        X: `m x n x d`, in the problem's bounds.
        Y: `m x n x 1`.
        bounds: `2 x d`.
        options: kernel and priors.
    """
    units = [units_of(options.box(bounds), y[:, 0]) for y in Y]
    samples = [Sample(unit.inputs(x), unit.outputs(y[:, 0])) for unit, x, y in zip(units, X, Y, strict=True)]
    unknowns = unknowns_of(X.shape[-1], options)
    size = max(1, ELEMENTS // X.shape[1] ** 2)
    found: list[Array | None] = []
    with torch.inference_mode():
        for first in range(0, len(samples), size):
            found += maximise_each(unknowns, stack_of(samples[first : first + size]), options.kernel)
    return [
        None if raw is None else ExactProcess(sample.X, sample.y, unit, options.kernel, unknowns.values(raw))
        for raw, sample, unit in zip(found, samples, units, strict=True)
    ]


def fit_outcomes(data: History, bounds: Tensor, options: ModelOptions) -> list[ExactProcess]:
    """Return one process an outcome, each on the points where that outcome was observed; see `fit_process`."""
    seen = torch.isfinite(data.Y).unbind(-1)
    return [
        fit_process(data.X[there], y[there], bounds, options)
        for there, y in zip(seen, data.Y.split(1, dim=-1), strict=True)
    ]


def fitted(sample: Sample, kernel: Kernel, unknowns: Unknowns, units: Units) -> ExactProcess:
    """Return the process of data in the unit cube with its unknown hyperparameters at a maximum; see `fit_process`."""
    objective = partial(unknowns.penalised, sample=sample, kernel=kernel)
    with torch.inference_mode():
        raw, failed = maximise(objective, unknowns, np.random.default_rng(0))
    for message in failed:
        warnings.warn(f"hyperparameters: {message}", FitStoppedEarlyWarning, stacklevel=3)
    return ExactProcess(sample.X, sample.y, units, kernel, unknowns.values(raw))
