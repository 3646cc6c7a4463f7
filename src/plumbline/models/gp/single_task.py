"""A fitted GP as BoTorch's own model, for code that conditions on fantasies or looks inside the model."""

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.settings import validate_input_scaling
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel as Covariance
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from torch import Tensor

from plumbline.models.algebra import Kernel
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.standardisation import Standardisation

ORDERS: dict[Kernel, float] = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
"""Orders of the Matern kernels."""


def single_task_gp(
    U: Tensor, y: Tensor, standardisation: Standardisation, kernel: Kernel, at: Hyperparameters
) -> SingleTaskGP:
    """Return a GP with known hyperparameters as BoTorch's `SingleTaskGP`, in eval mode, without priors.

    Args:
        U: `n x d`, the data's inputs in the unit cube.
        y: `n`, their standardised observations.
        standardisation: transforms of inputs and observations.
        kernel: kernel of unit variance.
        at: the hyperparameters, in standardised units.
    """
    d, several = U.shape[-1], len(at.noise) > 1
    bounds = torch.stack([standardisation.low, standardisation.low + standardisation.width])
    noise = at.noise.expand(len(y)).unsqueeze(-1)
    # Points outside of the box are nobody's mistake here: a trust region has models of its own box.
    with validate_input_scaling(False):
        model = SingleTaskGP(
            standardisation.points(U),
            standardisation.observations(y).unsqueeze(-1),
            train_Yvar=noise.clamp_min(1.0) if several else None,
            likelihood=None if several else _likelihood(at.noise),
            covar_module=_covariance(kernel, at, d),
            input_transform=Normalize(d, bounds=bounds),
            outcome_transform=_standardize(standardisation),
        ).to(y)
    model.mean_module.initialize(constant=y.new_tensor(at.constant))
    if several:
        model.likelihood = _known_noise(at.noise)
    # A model standardises by the mean and standard deviation of its own data, which need not be ours.
    model.outcome_transform = _standardize(standardisation)
    model.set_train_data(targets=y, strict=False)
    return model.eval()


def _covariance(kernel: Kernel, at: Hyperparameters, d: int) -> ScaleKernel:
    ard = d if len(at.lengthscale) > 1 else None
    base: Covariance = (
        RBFKernel(ard_num_dims=ard) if kernel == "rbf" else MaternKernel(ORDERS[kernel], ard_num_dims=ard)
    )
    covariance = ScaleKernel(base).to(at.lengthscale)
    base.lengthscale = at.lengthscale
    covariance.outputscale = at.lengthscale.new_tensor(at.outputscale)  # of a float, GPyTorch makes a float32
    return covariance


def _likelihood(noise: Tensor) -> GaussianLikelihood:
    likelihood = GaussianLikelihood(noise_constraint=GreaterThan(0.0)).to(noise)
    likelihood.noise = noise
    return likelihood


def _known_noise(noise: Tensor) -> FixedNoiseGaussianLikelihood:
    likelihood = FixedNoiseGaussianLikelihood(noise.clamp_min(1.0))
    likelihood.noise_covar.noise = noise  # GPyTorch raises small noise, and warns
    return likelihood


def _standardize(standardisation: Standardisation) -> Standardize:
    transform = Standardize(m=1).double()
    transform.means = transform.means.new_full((1, 1), standardisation.location)
    transform.stdvs = transform.means.new_full((1, 1), standardisation.scale)
    transform._stdvs_sq = transform.stdvs.square()
    transform._is_trained = torch.tensor(True)
    return transform.eval()
