"""Bayesian optimisation of one outcome with an exact Gaussian process."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from botorch.acquisition import (
    AcquisitionFunction,
    ExpectedImprovement,
    LogExpectedImprovement,
    UpperConfidenceBound,
    qExpectedImprovement,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
    qProbabilityOfImprovement,
    qUpperConfidenceBound,
)
from botorch.acquisition.analytic import LogProbabilityOfImprovement
from botorch.acquisition.objective import PosteriorTransform
from botorch.models import SingleTaskGP
from botorch.sampling import SobolQMCNormalSampler
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Size, Tensor

from plumbline.calibration.alpha import Alpha, alpha_at
from plumbline.calibration.predictive import GaussianPredictive
from plumbline.history import History
from plumbline.methods.base import Predictor, methods
from plumbline.methods.composed import ComposedMethod, Round, kernel_lengthscales
from plumbline.models.exact import ModelOptions, fit_gp
from plumbline.options import Options
from plumbline.spaces.search import SearchOptions


class GPOptions(Options):
    """Options of every method with an exact Gaussian process.

    Attributes:
        model: kernel and priors.
        search: the multi-start search for the acquisition's maximiser.
        mc_samples: quasi-random posterior samples of the acquisitions without a closed form (all of them at q > 1).
    """

    model: ModelOptions = ModelOptions()
    search: SearchOptions = SearchOptions()
    mc_samples: PositiveInt = 128


class ImprovementOptions(GPOptions):
    """Options of the improvement-based acquisitions.

    Attributes:
        jitter: what must be gained over the best observation to count, in standard deviations of the observations.
    """

    jitter: NonNegativeFloat = 0.0


class ConfidenceBoundOptions(GPOptions):
    """Options of the upper confidence bound.

    Attributes:
        alpha: the bound is the upper end of the central credible interval of level `1 - alpha`.
        sqrt_beta: the bound is `mean + sqrt_beta * sd`; used instead of `alpha` where given.
    """

    alpha: Alpha = 0.05
    sqrt_beta: PositiveFloat | None = None


@dataclass(frozen=True)
class SeenProcess:
    """An exact Gaussian process, and what it is seen through.

    Attributes:
        model: fitted.
        transform: of its posterior; None for the posterior as it is.
    """

    model: SingleTaskGP
    transform: PosteriorTransform | None = None


class GPMethod(ComposedMethod[SeenProcess]):
    """An exact Gaussian process of one outcome; a subclass says which utility is maximised."""

    takes = "one objective"
    options: GPOptions

    def fit(self, data: History) -> SeenProcess:
        """Return the model of what has been observed."""
        return SeenProcess(fit_gp(data.X, data.Y, self.domain.bounds, self.options.model))

    def predictive(self, surrogate: SeenProcess) -> Predictor:
        """Return the model's predictions."""
        return gaussian_predictor(surrogate.model, surrogate.transform)

    def lengthscales(self, surrogate: SeenProcess) -> Tensor:
        """Return the lengthscales of the kernel."""
        return kernel_lengthscales(surrogate.model.covar_module)


def base_samples(samples: int, seed: int) -> SobolQMCNormalSampler:
    """Return the quasi-random base samples of a Monte Carlo acquisition."""
    return SobolQMCNormalSampler(Size([samples]), seed=seed)


def gaussian_predictor(
    model: SingleTaskGP, transform: PosteriorTransform | None = None
) -> Callable[[Tensor], GaussianPredictive]:
    """Return what maps `n x d` points to the model's forecasts of observations there, seen through `transform`."""

    def predict(points: Tensor) -> GaussianPredictive:
        with torch.no_grad():
            posterior = model.posterior(points, observation_noise=True, posterior_transform=transform)
            return GaussianPredictive(posterior.mean.squeeze(-1), posterior.variance.sqrt().squeeze(-1))

    return predict


def improvement_threshold(data: History, jitter: float) -> Tensor:
    """Return the value to improve on: the best observation plus `jitter` standard deviations of the observations."""
    spread = data.Y.std() if len(data) > 1 else 0.0
    return data.Y.max() + jitter * spread


class ImprovementMethod(GPMethod):
    """A utility of how much better than the best observation a point may be: one in closed form, one for batches."""

    options: ImprovementOptions
    closed_form: ClassVar[type[AcquisitionFunction]]
    batch: ClassVar[type[AcquisitionFunction]]

    def utility(self, surrogate: SeenProcess, round: Round) -> AcquisitionFunction:
        """Return the closed form at q = 1, the Monte Carlo estimate otherwise."""
        best = improvement_threshold(round.data, self.options.jitter)
        model, transform = surrogate.model, surrogate.transform
        if round.q == 1:
            return self.closed_form(model, best, posterior_transform=transform)
        sampler = base_samples(self.options.mc_samples, round.seed)
        return self.batch(model, best, sampler=sampler, posterior_transform=transform)


@methods.register("ei", ImprovementOptions)
class ExpectedImprovementMethod(ImprovementMethod):
    """Expected improvement over the best observation, in closed form at q = 1."""

    closed_form = ExpectedImprovement
    batch = qExpectedImprovement


@methods.register("logei", ImprovementOptions)
class LogExpectedImprovementMethod(ImprovementMethod):
    """The logarithm of expected improvement: the same maximiser, gradients that do not vanish."""

    closed_form = LogExpectedImprovement
    batch = qLogExpectedImprovement


@methods.register("pi", ImprovementOptions)
class ProbabilityOfImprovementMethod(ImprovementMethod):
    """Probability of improvement (its logarithm is maximised: the same maximiser)."""

    closed_form = LogProbabilityOfImprovement
    batch = qProbabilityOfImprovement


@methods.register("ucb", ConfidenceBoundOptions)
class UpperConfidenceBoundMethod(GPMethod):
    """Upper confidence bound, from a level alpha or a fixed multiple of the standard deviation."""

    options: ConfidenceBoundOptions

    def utility(self, surrogate: SeenProcess, round: Round) -> AcquisitionFunction:
        """Return (q)UCB."""
        beta = self.sqrt_beta(len(round.history)) ** 2
        model, transform = surrogate.model, surrogate.transform
        if round.q == 1:
            return UpperConfidenceBound(model, beta, posterior_transform=transform)
        sampler = base_samples(self.options.mc_samples, round.seed)
        return qUpperConfidenceBound(model, beta, sampler=sampler, posterior_transform=transform)

    def sqrt_beta(self, n: int) -> float:
        """Return the multiple of the standard deviation after `n` observations."""
        if self.options.sqrt_beta is not None:
            return self.options.sqrt_beta
        level = torch.tensor(1 - alpha_at(self.options.alpha, n) / 2, dtype=torch.float64)
        return float(torch.special.ndtri(level))


@methods.register("nei", GPOptions)
class NoisyExpectedImprovementMethod(GPMethod):
    """Noisy expected improvement: the best value so far is itself uncertain (BoTorch's qLogNEI)."""

    def utility(self, surrogate: SeenProcess, round: Round) -> AcquisitionFunction:
        """Return qLogNEI."""
        return qLogNoisyExpectedImprovement(
            surrogate.model,
            round.data.X,
            sampler=base_samples(self.options.mc_samples, round.seed),
            posterior_transform=surrogate.transform,
            prune_baseline=True,
        )
