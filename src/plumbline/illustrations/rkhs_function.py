"""A target function of known norm beside draws of the GP with the same kernel: CBO, figure 9."""

from pathlib import Path

import pandas as pd
import torch
from pydantic import PositiveInt
from torch import Generator, Tensor

from plumbline.illustrations.base import grid, illustrations, rows, table
from plumbline.problems.base import Context
from plumbline.problems.rkhs import RKHSFunction, RKHSOptions, make_kernel, rkhs

DRAWS, POINTS = 6, 301
"""Draws of the Gaussian process, and points of the grid."""


class FunctionOptions(RKHSOptions):
    """Options of the illustration: those of the function."""

    dim: PositiveInt = 1


def prior_draws(K: Tensor, draws: int, generator: Generator) -> Tensor:
    """Return draws of `N(0, K)`, `draws x n`, by eigenvalues, since `K` is numerically singular on a fine grid."""
    values, vectors = torch.linalg.eigh(K)
    eps = torch.randn(draws, len(K), generator=generator, dtype=K.dtype)
    return eps * values.clamp_min(0.0).sqrt() @ vectors.mT


def labels(function: RKHSFunction, noise_variance: float) -> Tensor:
    r"""Return the noisy labels at the basis points that algorithm 3 fits, `n`: `y = (K + \sigma^2 I) c`."""
    return function(function.basis, noise=False) + noise_variance * function.coefficients


@illustrations.register("rkhs-function", FunctionOptions)
def rkhs_function(options: FunctionOptions, generator: Generator) -> pd.DataFrame:
    """Draws of a Gaussian process, and a function of known norm fitted to a noisy draw at the basis points."""
    x = grid(POINTS)
    kernel = make_kernel(options.kernel, options.lengthscale)
    function = rkhs(options, Context(Path(), generator))
    draws = prior_draws(kernel(x.unsqueeze(-1)).to_dense(), DRAWS, generator)
    basis = function.basis.squeeze(-1)
    return table(
        [
            *(rows("prior", f"draw {i}", x=x, value=draw) for i, draw in enumerate(draws)),
            rows("function", "truth", x=x, value=function(x.unsqueeze(-1), noise=False)),
            rows("function", "labels", x=basis, value=labels(function, options.noise_variance)),
            rows("function", "norm", value=function.norm),
        ]
    )
