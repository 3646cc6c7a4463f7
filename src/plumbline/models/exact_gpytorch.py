"""An exact process as a model of BoTorch and GPyTorch: for whatever is written for those, and to be compared with."""

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.models.utils.gpytorch_modules import (
    get_covar_module_with_dim_scaled_prior,
    get_gaussian_likelihood_with_lognormal_prior,
    get_matern_kernel_with_gamma_prior,
)
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.priors import GammaPrior
from torch import Tensor

from plumbline.models.exact_process import NOISE_FLOOR, ExactProcess, ModelOptions


def make_kernel(dim: int, options: ModelOptions) -> Kernel:
    """Return GPyTorch's covariance over the unit cube of dimension `dim`, with its priors and initial values."""
    rbf = options.kernel == "rbf"
    if options.priors == "botorch":
        return get_covar_module_with_dim_scaled_prior(ard_num_dims=dim, use_rbf_kernel=rbf)
    inputs = dim if options.ard else None
    if options.priors == "conformal":
        kernel = get_matern_kernel_with_gamma_prior(ard_num_dims=inputs)
        if rbf:
            kernel.base_kernel = RBFKernel(ard_num_dims=inputs, lengthscale_prior=GammaPrior(3.0, 6.0))
        return kernel
    return ScaleKernel(RBFKernel(ard_num_dims=inputs) if rbf else MaternKernel(nu=2.5, ard_num_dims=inputs))


def make_likelihood(options: ModelOptions) -> GaussianLikelihood:
    """Return GPyTorch's Gaussian likelihood; variances are in units of standardised observations."""
    if options.priors == "botorch":
        return get_gaussian_likelihood_with_lognormal_prior()
    if options.priors == "conformal":
        return GaussianLikelihood(noise_constraint=Interval(5e-4, 0.5, initial_value=1e-2))
    return GaussianLikelihood(noise_constraint=GreaterThan(NOISE_FLOOR, initial_value=1e-2))


def untrained_model(X: Tensor, Y: Tensor, bounds: Tensor, options: ModelOptions) -> SingleTaskGP:
    """Return the model that BoTorch would fit where `fit_process` is asked to.

    Args:
        X: `n x d`, in the problem's bounds.
        Y: `n x 1`.
        bounds: `2 x d`.
        options: kernel and priors.
    """
    kernel = make_kernel(X.shape[-1], options)
    if options.lengthscale is not None:
        stationary = getattr(kernel, "base_kernel", kernel)
        stationary.lengthscale = options.lengthscale
        stationary.raw_lengthscale.requires_grad_(requires_grad=False)
    return SingleTaskGP(
        X,
        Y,
        covar_module=kernel,
        likelihood=make_likelihood(options),
        input_transform=Normalize(d=X.shape[-1], bounds=bounds),
        outcome_transform=Standardize(m=1),
    )


def gpytorch_model(process: ExactProcess) -> SingleTaskGP:
    """Return a model with the same data and hyperparameters, in the problem's units: its posterior is the process's.

    It has no priors, and can be trained on as GPyTorch trains its own; the factor of a recalibrated deviation is left
    out.
    """
    units, at = process.units, process.at
    d = process.U.shape[-1]
    ard = d if len(at.lengthscale) > 1 else None
    kernel = ScaleKernel(
        RBFKernel(ard_num_dims=ard) if process.kernel == "rbf" else MaternKernel(2.5, ard_num_dims=ard)
    )
    bounds = torch.stack([units.low, units.low + units.width])
    known = len(at.noise) > 1
    Y = (units.location + units.scale * process.y).unsqueeze(-1)
    likelihood = GaussianLikelihood(noise_constraint=GreaterThan(0.0))
    model = SingleTaskGP(
        units.points(process.U),
        Y,
        train_Yvar=units.scale**2 * at.noise.unsqueeze(-1) if known else None,
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
    standardize.means.fill_(units.location)
    standardize.stdvs.fill_(units.scale)
    standardize._stdvs_sq.fill_(units.scale**2)
    model.set_train_data(targets=process.y, strict=False)
    return model.eval()
