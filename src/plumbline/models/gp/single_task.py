"""A fitted GP as BoTorch's own model, for code that conditions on fantasies or looks inside the model."""

from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar
from weakref import ref

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.posteriors import GPyTorchPosterior, TransformedPosterior
from botorch.settings import validate_input_scaling
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel as Covariance
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.models.exact_prediction_strategies import prediction_strategy
from torch import Tensor

from plumbline.models.algebra import Kernel
from plumbline.models.botorch_model import Process, ProcessModel
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.marginal import GPMarginalPosterior
from plumbline.models.standardisation import Standardisation

ORDERS: dict[Kernel, float] = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
"""Orders of the Matern kernels."""

Made = TypeVar("Made", bound=SingleTaskGP)


class Fitted(Process, Protocol):
    """A GP with marginal posteriors whose gradients are in closed form."""

    def marginal_posterior(self, X: Tensor) -> GPMarginalPosterior:
        """Return the marginal posteriors of f at `b x d` points."""
        ...


class MarginalMoments(torch.autograd.Function):
    """Means and standard deviations of f at points, with the vector-Jacobian product of `GPMarginalPosterior`."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, process: Fitted) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations at `X`, `batch_shape x 1 x d`: `batch_shape x 1` each."""
        ctx.process, ctx.points = process, process.marginal_posterior(X.detach().reshape(-1, X.shape[-1]))
        ctx.save_for_backward(X)
        return ctx.points.mean.reshape(X.shape[:-1]), ctx.points.sd.reshape(X.shape[:-1])

    @staticmethod
    def backward(ctx: Any, grad_mean: Tensor, grad_sd: Tensor) -> tuple[Tensor, None]:
        """Return the gradient in the points, by autograd where it is to be differentiated itself."""
        (X,) = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return ctx.points.vjp(grad_mean.reshape(-1), grad_sd.reshape(-1)).reshape(X.shape), None
        mean, variance = ctx.process.posterior_moments(X, joint=False)
        return torch.autograd.grad((mean, variance.sqrt()), X, (grad_mean, grad_sd), create_graph=True)[0], None


@dataclass(frozen=True)
class Pointwise:
    """A GP whose posterior at single points is computed by `MarginalMoments`.

    Attributes:
        process: the GP.
    """

    process: Fitted

    @property
    def noise_variance(self) -> float:
        """Variance of the observations' noise."""
        return self.process.noise_variance

    def posterior_moments(self, X: Tensor, joint: bool = True) -> tuple[Tensor, Tensor]:
        """Return posterior means of f, `batch_shape x q`, and covariances, `batch_shape x q x q`, or variances.

        Args as of `Process.posterior_moments`.
        """
        if X.shape[-2] > 1:
            return self.process.posterior_moments(X, joint)
        mean, sd = MarginalMoments.apply(X, self.process)
        return mean, sd.square().unsqueeze(-1) if joint else sd.square()


class ClosedFormGP(SingleTaskGP):
    """BoTorch's `SingleTaskGP` whose posterior is computed in closed form, in a fraction of GPyTorch's time.

    GPyTorch answers instead once the model is no longer the fitted GP: conditioned on more data, given other data, or
    trained.
    """

    def answered_by(self, process: Fitted) -> Self:
        """Take posteriors from `process`, the same GP; return self."""
        # All that changes a GP in GPyTorch replaces its prediction strategy. The first posterior would make it, and
        # solve for a datum that nobody asked for.
        self.prediction_strategy = prediction_strategy(
            self.train_inputs, self.forward(*self.train_inputs), self.train_targets, self.likelihood
        )
        self.process, self.fitted = Pointwise(process), ref(self.prediction_strategy)
        return self

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> GPyTorchPosterior | TransformedPosterior:
        """Return the joint posterior at `X`, `batch_shape x q x d`, in the problem's units.

        Args as of `SingleTaskGP.posterior`.
        """
        as_fitted = self.prediction_strategy is not None and self.prediction_strategy is self.fitted()
        if as_fitted and not isinstance(observation_noise, Tensor):
            return ProcessModel(self.process).posterior(X, None, observation_noise, posterior_transform)
        return super().posterior(X, output_indices, observation_noise, posterior_transform)


def single_task_gp(
    U: Tensor,
    y: Tensor,
    standardisation: Standardisation,
    kernel: Kernel,
    at: Hyperparameters,
    made: type[Made] = SingleTaskGP,
) -> Made:
    """Return a GP with known hyperparameters as BoTorch's `SingleTaskGP`, in eval mode, without priors.

    Args:
        U: `n x d`, the data's inputs in the unit cube.
        y: `n`, their standardised observations.
        standardisation: transforms of inputs and observations.
        kernel: kernel of unit variance.
        at: the hyperparameters, in standardised units.
        made: the class of the model.
    """
    d, several = U.shape[-1], len(at.noise) > 1
    bounds = torch.stack([standardisation.low, standardisation.low + standardisation.width])
    noise = at.noise.expand(len(y)).unsqueeze(-1)
    # Points outside of the box are nobody's mistake here: a trust region has models of its own box.
    with validate_input_scaling(False):
        model = made(
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
