"""The models that BoTorch would fit: what our fits are compared with."""

from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.models.utils.gpytorch_modules import (
    get_covar_module_with_dim_scaled_prior,
    get_gaussian_likelihood_with_gamma_prior,
    get_gaussian_likelihood_with_lognormal_prior,
    get_matern_kernel_with_gamma_prior,
)
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.priors import GammaPrior
from torch import Tensor

from plumbline.models.gp.fit import NOISE_FLOOR, ModelOptions


def make_kernel(dim: int, options: ModelOptions) -> Kernel:
    """Return GPyTorch's covariance over the unit cube of dimension `dim`, with its priors and initial values."""
    rbf = options.kernel == "rbf"
    if options.priors == "botorch":
        return get_covar_module_with_dim_scaled_prior(ard_num_dims=dim, use_rbf_kernel=rbf)
    inputs = dim if options.ard else None
    if options.priors in ("conformal", "botorch-0.9"):
        kernel = get_matern_kernel_with_gamma_prior(ard_num_dims=inputs)
        if rbf:
            kernel.base_kernel = RBFKernel(ard_num_dims=inputs, lengthscale_prior=GammaPrior(3.0, 6.0))
        return kernel
    return ScaleKernel(RBFKernel(ard_num_dims=inputs) if rbf else MaternKernel(nu=2.5, ard_num_dims=inputs))


def make_likelihood(options: ModelOptions) -> GaussianLikelihood:
    """Return GPyTorch's Gaussian likelihood; variances are in units of standardised observations."""
    if options.priors == "botorch":
        return get_gaussian_likelihood_with_lognormal_prior()
    if options.priors == "botorch-0.9":
        return get_gaussian_likelihood_with_gamma_prior()
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
