"""A fitted model of few points that utilities are checked on."""

import pytest
import torch
from botorch.models import SingleTaskGP

from plumbline.models.exact import ModelOptions, make_gp

BOUNDS = torch.tensor([[-2.0, 0.0], [2.0, 10.0]], dtype=torch.float64)


@pytest.fixture(scope="session")
def bounds() -> torch.Tensor:
    return BOUNDS


@pytest.fixture(scope="session")
def model() -> SingleTaskGP:
    """A Gaussian process on seven points, in units far from standard ones, at fixed hyperparameters."""
    U = torch.rand(7, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    X = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * U
    Y = 40 + 8 * torch.sin(4 * U.sum(dim=-1, keepdim=True))
    gp = make_gp(X, Y, BOUNDS, ModelOptions(priors="none", ard=False))
    gp.covar_module.base_kernel.lengthscale = 0.4
    gp.likelihood.noise = 0.01
    return gp.eval()


@pytest.fixture
def points() -> torch.Tensor:
    """Five points of the box, `5 x 1 x 2`."""
    U = torch.rand(5, 1, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * U
