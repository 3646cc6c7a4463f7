"""A sparse process as a model of BoTorch and GPyTorch: for whatever is written for those."""

import math

import torch
from botorch.models import SingleTaskVariationalGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood

from plumbline.models.standardisation import Standardisation
from plumbline.models.svgp.objective import Parameters
from plumbline.models.svgp.process import SVGP


def gpytorch_model(process: SVGP) -> SingleTaskVariationalGP:
    """Return a model with the same parameters, in the problem's units; its own parameters are copies.

    Its posterior is that of `ProcessModel`, which is faster. It can be trained on, in standardised units, as GPyTorch
    trains its own: `model.model` and `model.likelihood`.
    """
    own = _untrained(process)
    with torch.no_grad():
        for parameter, value in zip(parameters_of(own), process.parameters, strict=True):
            parameter.copy_(value.view_as(parameter))
    own.model.variational_strategy.variational_params_initialized.fill_(
        1
    )  # else the first call would begin with the prior
    own.input_transform = Normalize(process.layout.d, bounds=_box(process.standardisation))
    own.outcome_transform = _standardize(process.standardisation).to(process.row)
    return own.eval()


def parameters_of(model: SingleTaskVariationalGP) -> Parameters:
    """Return the parameters of a model that `gpytorch_model` made, themselves and not copies, in GPyTorch's shapes."""
    gp, strategy = model.model, model.model.variational_strategy
    beliefs = strategy._variational_distribution
    return Parameters(
        strategy.inducing_points,
        beliefs.variational_mean,
        beliefs.chol_variational_covar,
        gp.mean_module.raw_constant,
        gp.covar_module.base_kernel.raw_lengthscale,
        gp.covar_module.raw_outputscale,
        model.likelihood.raw_noise,
    )


def _untrained(process: SVGP) -> SingleTaskVariationalGP:
    """Return a model at the process's inducing points."""
    Z = process.parameters.inducing.squeeze(0).detach().clone()
    base = RBFKernel() if process.kernel == "rbf" else MaternKernel(nu=2.5)
    return SingleTaskVariationalGP(
        Z, likelihood=GaussianLikelihood(), covar_module=ScaleKernel(base), inducing_points=Z
    )


def _box(standardisation: Standardisation) -> torch.Tensor:
    """Return the box that is the unit cube in `units`."""
    return torch.stack([standardisation.low, standardisation.low + standardisation.width])


def _standardize(standardisation: Standardisation) -> Standardize:
    """Return BoTorch's transform to `units`, which it learns from two observations with their mean and deviation."""
    transform = Standardize(1)
    deviation = standardisation.scale / math.sqrt(2)
    transform(
        torch.tensor(
            [[standardisation.location - deviation], [standardisation.location + deviation]], dtype=torch.float64
        )
    )
    return transform.eval()
