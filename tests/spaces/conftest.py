"""A model of few points whose utilities are searched for."""

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
    """A Gaussian process at fixed hyperparameters, of waves that have one peak in the box."""
    U = torch.rand(7, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    waves = 40 + 8 * torch.sin(4 * U.sum(dim=-1, keepdim=True))
    gp = make_gp(BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * U, waves, BOUNDS, ModelOptions(priors="none", ard=False))
    gp.covar_module.base_kernel.lengthscale = 0.4
    gp.likelihood.noise = 0.01
    return gp.eval()
