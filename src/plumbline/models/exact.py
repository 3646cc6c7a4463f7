"""Exact Gaussian processes."""

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.models.utils.gpytorch_modules import (
    get_covar_module_with_dim_scaled_prior,
    get_gaussian_likelihood_with_lognormal_prior,
    get_matern_kernel_with_gamma_prior,
)
from gpytorch import ExactMarginalLogLikelihood
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.priors import GammaPrior
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from plumbline.models.exact_process import NOISE_FLOOR, ModelOptions


def make_kernel(dim: int, options: ModelOptions) -> Kernel:
    """Return the covariance over the unit cube of dimension `dim`."""
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
    """Return the homoscedastic Gaussian likelihood; variances are in units of standardised observations."""
    if options.priors == "botorch":
        return get_gaussian_likelihood_with_lognormal_prior()
    if options.priors == "conformal":
        return GaussianLikelihood(noise_constraint=Interval(5e-4, 0.5, initial_value=1e-2))
    return GaussianLikelihood(noise_constraint=GreaterThan(NOISE_FLOOR, initial_value=1e-2))


def make_gp(X: Tensor, Y: Tensor, bounds: Tensor, options: ModelOptions) -> SingleTaskGP:
    """Return an unfitted Gaussian process.

    Args:
        X: `n x d`, in the problem's bounds; normalised to the unit cube inside.
        Y: `n x 1`; standardised inside.
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


def fit_gp(X: Tensor, Y: Tensor, bounds: Tensor, options: ModelOptions) -> SingleTaskGP:
    """Return a Gaussian process with hyperparameters at a (penalised) maximum of the marginal likelihood.

    Arguments as of `make_gp`.

    Raises:
        botorch.exceptions.ModelFittingError: no attempt of the optimiser succeeded.
    """
    model = make_gp(X, Y, bounds, options)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def whitened_residuals(model: SingleTaskGP) -> tuple[Tensor, Tensor]:
    """Return the Cholesky factor of `K + s2n I` and `e = L^-1 (y - mean)`, in the model's standardised space.

    Args:
        model: in evaluation mode.

    Returns:
        `L`, `n x n` lower triangular, and `e`, `n`.
    """
    prior = model.likelihood(model.forward(model.train_inputs[0]))
    L = psd_safe_cholesky(prior.covariance_matrix)
    residual = (model.train_targets - prior.mean).unsqueeze(-1)
    return L, torch.linalg.solve_triangular(L, residual, upper=False).squeeze(-1)
