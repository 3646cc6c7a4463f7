"""An exact process as a model of BoTorch and GPyTorch: for whatever is written for those."""

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood

from plumbline.models.algebra import Kernel
from plumbline.models.gp.process import GP

ORDERS: dict[Kernel, float] = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
"""Of the Matern kernels."""


def gpytorch_model(process: GP) -> SingleTaskGP:
    """Return a model with the same data and hyperparameters, in the problem's units: its posterior is the process's.

    It has no priors, and can be trained on as GPyTorch trains its own; the factor of a recalibrated deviation is left
    out.
    """
    standardisation, at = process.standardisation, process.at
    d = process.U.shape[-1]
    ard = d if len(at.lengthscale) > 1 else None
    kernel = ScaleKernel(
        RBFKernel(ard_num_dims=ard)
        if process.kernel == "rbf"
        else MaternKernel(ORDERS[process.kernel], ard_num_dims=ard)
    )
    bounds = torch.stack([standardisation.low, standardisation.low + standardisation.width])
    known = len(at.noise) > 1
    Y = (standardisation.location + standardisation.scale * process.y).unsqueeze(-1)
    likelihood = GaussianLikelihood(noise_constraint=GreaterThan(0.0))
    model = SingleTaskGP(
        standardisation.points(process.U),
        Y,
        train_Yvar=standardisation.scale**2 * at.noise.unsqueeze(-1) if known else None,
        covar_module=kernel,
        likelihood=None if known else likelihood,
        input_transform=Normalize(d, bounds=bounds),
        outcome_transform=Standardize(m=1),
    ).to(process.y)
    kernel.base_kernel.lengthscale = at.lengthscale
    kernel.outputscale = at.outputscale
    model.mean_module.initialize(constant=at.constant)
    if not known:
        model.likelihood.noise = at.noise
    standardize = model.outcome_transform
    standardize.means.fill_(standardisation.location)
    standardize.stdvs.fill_(standardisation.scale)
    standardize._stdvs_sq.fill_(standardisation.scale**2)
    model.set_train_data(targets=process.y, strict=False)
    return model.eval()
