"""Bayesian optimisation with an exact Gaussian process: fit, build a utility, maximise it."""

from abc import abstractmethod
from collections.abc import Callable
from time import perf_counter
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
from torch import Generator, Size, Tensor

from plumbline.acquisition.search import SearchOptions, maximise_in_box, maximise_in_table, surface_of
from plumbline.calibration.alpha import Alpha, alpha_at
from plumbline.calibration.predictive import GaussianPredictive
from plumbline.methods.base import History, Method, Predictor, Proposal, methods
from plumbline.models.exact import ModelOptions, fit_gp
from plumbline.options import Options
from plumbline.seeding import draw_seed


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


class SearchingMethod(Method):
    """A method that asks where an acquisition function is greatest."""

    options: GPOptions

    def maximiser(self, utility: AcquisitionFunction, history: History, q: int, seed: int) -> Tensor:
        """Return the `q x d` points of greatest utility, in the box or among the `choices` of the round."""
        choices = self.choices(history, Generator().manual_seed(seed))
        if choices is None:
            return maximise_in_box(utility, self.domain.bounds, q, self.options.search, seed)
        return maximise_in_table(utility, choices, q)

    def sampler(self, seed: int) -> SobolQMCNormalSampler:
        """Return the base samples of a Monte Carlo acquisition."""
        return SobolQMCNormalSampler(Size([self.options.mc_samples]), seed=seed)


class GPMethod(SearchingMethod):
    """The loop of Bayesian optimisation for one outcome; a subclass says which utility is maximised."""

    @abstractmethod
    def acquisition(
        self, model: SingleTaskGP, history: History, q: int, seed: int, transform: PosteriorTransform | None
    ) -> AcquisitionFunction:
        """Return the utility of `q` points under the posterior of `model` seen through `transform`."""

    def fit(self, history: History) -> SingleTaskGP:
        """Return the model of what has been observed."""
        return fit_gp(history.X, history.Y, self.domain.bounds, self.options.model)

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return the `q` points of greatest utility."""
        started = perf_counter()
        model = self.fit(history)
        return self.propose(model, history, q, generator, seconds={"fit": perf_counter() - started})

    def propose(
        self,
        model: SingleTaskGP,
        history: History,
        q: int,
        generator: Generator,
        transform: PosteriorTransform | None = None,
        seconds: dict[str, float] | None = None,
        notes: dict[str, float] | None = None,
    ) -> Proposal:
        """Return the `q` points of greatest utility under a given model."""
        started = perf_counter()
        seed = draw_seed(generator)
        utility = self.acquisition(model, history, q, seed, transform)
        X = self.maximiser(utility, history, q, seed)
        seconds = {**(seconds or {}), "acquire": perf_counter() - started}
        return Proposal(X, gaussian_predictor(model, transform), surface_of(utility), seconds, notes or {})

    def predictor(self, history: History) -> Predictor:
        """Return predictions from `history` alone."""
        return gaussian_predictor(self.fit(history))


def gaussian_predictor(
    model: SingleTaskGP, transform: PosteriorTransform | None = None
) -> Callable[[Tensor], GaussianPredictive]:
    """Return what maps `n x d` points to the model's forecasts of observations there, seen through `transform`."""

    def predict(points: Tensor) -> GaussianPredictive:
        with torch.no_grad():
            posterior = model.posterior(points, observation_noise=True, posterior_transform=transform)
            return GaussianPredictive(posterior.mean.squeeze(-1), posterior.variance.sqrt().squeeze(-1))

    return predict


def improvement_threshold(history: History, jitter: float) -> Tensor:
    """Return the value to improve on: the best observation plus `jitter` standard deviations of the observations."""
    spread = history.Y.std() if len(history) > 1 else 0.0
    return history.Y.max() + jitter * spread


class ImprovementMethod(GPMethod):
    """A utility of how much better than the best observation a point may be: one in closed form, one for batches."""

    options: ImprovementOptions
    closed_form: ClassVar[type[AcquisitionFunction]]
    batch: ClassVar[type[AcquisitionFunction]]

    def acquisition(
        self, model: SingleTaskGP, history: History, q: int, seed: int, transform: PosteriorTransform | None
    ) -> AcquisitionFunction:
        """Return the closed form at q = 1, the Monte Carlo estimate otherwise."""
        best = improvement_threshold(history, self.options.jitter)
        if q == 1:
            return self.closed_form(model, best, posterior_transform=transform)
        return self.batch(model, best, sampler=self.sampler(seed), posterior_transform=transform)


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

    def acquisition(
        self, model: SingleTaskGP, history: History, q: int, seed: int, transform: PosteriorTransform | None
    ) -> AcquisitionFunction:
        """Return (q)UCB."""
        beta = self.sqrt_beta(len(history)) ** 2
        if q == 1:
            return UpperConfidenceBound(model, beta, posterior_transform=transform)
        return qUpperConfidenceBound(model, beta, sampler=self.sampler(seed), posterior_transform=transform)

    def sqrt_beta(self, n: int) -> float:
        """Return the multiple of the standard deviation after `n` observations."""
        if self.options.sqrt_beta is not None:
            return self.options.sqrt_beta
        level = torch.tensor(1 - alpha_at(self.options.alpha, n) / 2, dtype=torch.float64)
        return float(torch.special.ndtri(level))


@methods.register("nei", GPOptions)
class NoisyExpectedImprovementMethod(GPMethod):
    """Noisy expected improvement: the best value so far is itself uncertain (BoTorch's qLogNEI)."""

    def acquisition(
        self, model: SingleTaskGP, history: History, q: int, seed: int, transform: PosteriorTransform | None
    ) -> AcquisitionFunction:
        """Return qLogNEI."""
        return qLogNoisyExpectedImprovement(
            model, history.X, sampler=self.sampler(seed), posterior_transform=transform, prune_baseline=True
        )
