"""Where an acquisition function is greatest: multi-start L-BFGS in a box, enumeration in a table."""

from collections.abc import Callable

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.optim import optimize_acqf, optimize_acqf_discrete
from pydantic import PositiveInt
from torch import Tensor

from plumbline.options import Options


class SearchOptions(Options):
    """Options of the multi-start search in a box: starts, random points they are chosen from, and L-BFGS iterations."""

    restarts: PositiveInt = 10
    raw_samples: PositiveInt = 256
    maxiter: PositiveInt = 200


def maximise_in_box(
    acquisition: AcquisitionFunction, bounds: Tensor, q: int, options: SearchOptions, seed: int
) -> Tensor:
    """Return the `q x d` maximiser of `acquisition` in `bounds` (`2 x d`); the same for the same seed."""
    X, _ = optimize_acqf(
        acquisition,
        bounds,
        q=q,
        num_restarts=options.restarts,
        raw_samples=options.raw_samples,
        options={"seed": seed, "maxiter": options.maxiter},
    )
    return X.detach()


def maximise_in_table(acquisition: AcquisitionFunction, choices: Tensor, q: int) -> Tensor:
    """Return the `q x d` rows of `choices` (`N x d`) that maximise `acquisition`, one after another."""
    X, _ = optimize_acqf_discrete(acquisition, q=q, choices=choices, return_acq_values=False)
    return X


def surface_of(acquisition: AcquisitionFunction) -> Callable[[Tensor], Tensor]:
    """Return what maps `n x d` points, each on its own, to their values, `n`, without gradients."""

    def surface(points: Tensor) -> Tensor:
        with torch.no_grad():
            return acquisition(points.unsqueeze(-2))

    return surface
