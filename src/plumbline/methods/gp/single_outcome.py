"""Bayesian optimisation of one outcome with a Gaussian process."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Literal

import torch
from botorch.acquisition import AcquisitionFunction
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.acquisition.analytic import (
    AnalyticAcquisition,
    ClosedForm,
    expected_improvement,
    log_expected_improvement,
    log_probability_of_improvement,
    upper_confidence_bound,
)
from plumbline.acquisition.confidence_schedule import ConfidenceSchedule
from plumbline.acquisition.monte_carlo import (
    Integrand,
    MonteCarloAcquisition,
    batch_expected_improvement,
    batch_probability_of_improvement,
    batch_upper_confidence_bound,
    log_batch_improvement,
    noisy_improvement,
)
from plumbline.core.alpha import Alpha, alpha_at
from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.core.seeding import draw_seed
from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.base import Predictor, methods
from plumbline.methods.composed import Round, Steps, SurrogateMethod, failures_as_worst, surface_of
from plumbline.methods.gp.in_lockstep import fits, searches
from plumbline.methods.lockstep import JointStep, LockstepMethod
from plumbline.models.gp.fit import ModelOptions, fit_each, fit_process
from plumbline.models.gp.process import GP
from plumbline.spaces.box import Box
from plumbline.spaces.search import IncumbentSearchOptions, MultiStart, Neighbourhood, SearchOptions


class GPOptions(Options):
    """Options of every method with a Gaussian process.

    Attributes:
        model: kernel and priors.
        search: the multi-start search for the acquisition function's maximiser.
        mc_samples: quasi-random posterior samples where there is no closed form, as always at q > 1.
    """

    model: ModelOptions = ModelOptions()
    search: SearchOptions = SearchOptions()
    mc_samples: PositiveInt = 128


class DeclaredNoiseOptions(ModelOptions):
    """Options of a GP that may know its noise.

    Attributes:
        noise: `fitted`, or `declared`: known to be none where the problem declares none, else fitted.
    """

    noise: Literal["fitted", "declared"] = "fitted"


class IncumbentGPOptions(GPOptions):
    """Options of methods that choose a point by its own posterior alone.

    Attributes:
        model: kernel, priors and noise.
        search: the multi-start search, which may look around the incumbent: the observed point of greatest mean.
    """

    model: DeclaredNoiseOptions = DeclaredNoiseOptions()
    search: IncumbentSearchOptions = IncumbentSearchOptions()


class ImprovementOptions(IncumbentGPOptions):
    """Options of the improvement-based acquisition functions.

    Attributes:
        jitter: least improvement over the best observation that counts, in standard deviations of the observations.
    """

    jitter: NonNegativeFloat = 0.0


class ConfidenceBoundOptions(IncumbentGPOptions):
    """Options of the upper confidence bound.

    Attributes:
        alpha: the bound is the upper end of the central credible interval of level `1 - alpha`.
        sqrt_beta: the bound is `mean + sqrt_beta * sd`; used instead of `alpha` where given.
        schedule: theoretical schedule of the factor over rounds; used instead of both where given.
    """

    alpha: Alpha = 0.05
    sqrt_beta: PositiveFloat | None = None
    schedule: ConfidenceSchedule | None = None


class GPMethod(LockstepMethod, SurrogateMethod[GP]):
    """A Gaussian process of one outcome; a subclass gives the acquisition function."""

    takes = "one objective"
    provides = SurrogateMethod.provides | {
        "gp",
        "one gp",
        "one posterior",
        "lengthscales",
        "kernel",
        "batched fit",
        "shared gp",
        "lockstep",
    }
    options: GPOptions

    @property
    def steps(self) -> Steps[GP]:
        """The steps; seeds in lockstep fit their GPs and climb their acquisition functions together."""
        steps = super().steps
        usual = type(self).search is SurrogateMethod.search
        return replace(
            steps,
            fit_round=JointStep(self, fits, steps.fit_round),
            search=JointStep(self, searches, steps.search) if usual else steps.search,
        )

    def fit(self, data: History) -> GP:
        """Return the process conditioned on `data`."""
        return fit_process(data.X, data.Y, self.domain.bounds, self.options.model, self.known_noise)

    @property
    def known_noise(self) -> Tensor | None:
        """The known noise variance of all observations, `1`; None where it is fitted."""
        return None

    def fit_each(self, X: Tensor, Y: Tensor, near: GP | None = None, without_warning: bool = False) -> list[GP | None]:
        """Return `fit` of each of m data sets of one size, batched; None where only `fit` itself can tell.

        Args:
            X: `m x n x d`.
            Y: `m x n x 1`.
            near: `fit` of data that hardly differ, at whose hyperparameters the fits start; None for the usual start.
            without_warning: whether a fit that would warn is left to `fit`.
        """
        if type(self).fit is not GPMethod.fit:
            return [None] * len(X)
        return fit_each(X, Y, self.domain.bounds, self.options.model, self.known_noise, near, without_warning)

    def predictive(self, surrogate: GP) -> Predictor:
        """Return the process's predictions."""
        return gaussian_predictor(surrogate)

    def lengthscales(self, surrogate: GP) -> Tensor:
        """Return the lengthscales of the kernel."""
        return surrogate.lengthscale_in(self.domain.bounds)

    def recommend(self, history: History, generator: Generator) -> Tensor:
        """Return the point of greatest posterior mean, `1 x d`: anywhere in a box, in a table among evaluated points.

        The search is the same for all methods, independently of their search for queries.
        """
        data = self.training_rows(failures_as_worst(history, self.domain.outcomes))
        process = self.fit(data)
        mean = AnalyticAcquisition(process, upper_confidence_bound(0.0), unit=process.standardisation.scale)
        X, space = data.X, self.domain.space
        if isinstance(space, Box):
            X = torch.cat([X, space.maximise(mean, MultiStart(1, SearchOptions(), draw_seed(generator)))])
        return X[surface_of(mean)(X).argmax()].unsqueeze(0)


def gaussian_predictor(process: GP) -> Callable[[Tensor], GaussianPredictive]:
    """Return a map of `n x d` points to the process's forecasts of observations there."""

    def predict(points: Tensor) -> GaussianPredictive:
        posterior = process.marginal_posterior(points)
        return GaussianPredictive(posterior.mean, (posterior.sd.square() + process.noise_variance).sqrt())

    return predict


def improvement_threshold(data: History, jitter: float, best: Tensor | None = None) -> Tensor:
    """Return the value to improve on: `jitter` standard deviations of the observations above the best.

    Args:
        data: the observations.
        jitter: in standard deviations.
        best: the incumbent; None for the best observation.
    """
    spread = data.Y.std() if len(data) > 1 else 0.0
    return (data.Y.max() if best is None else best) + jitter * spread


class IncumbentGPMethod(GPMethod):
    """A Gaussian process whose noise may be declared, and a search that may look around the incumbent."""

    options: IncumbentGPOptions

    @property
    def known_noise(self) -> Tensor | None:
        """Zero where the noise is as declared, and none is."""
        none = self.options.model.noise == "declared" and self.domain.noise_free
        return torch.zeros(1, dtype=torch.float64) if none else None

    def neighbourhood(self, surrogate: GP, round: Round) -> Neighbourhood | None:
        """Return the neighbourhood of the observed point of greatest posterior mean."""
        if self.options.search.around_incumbent is None:
            return None
        with torch.no_grad():
            mean, _ = surrogate.posterior_moments(round.data.X, joint=False)
        return Neighbourhood(round.data.X[mean.argmax()], self.options.search.around_incumbent)


class ImprovementMethod(IncumbentGPMethod):
    """An acquisition function of the improvement over an incumbent.

    Attributes:
        closed_form, integrand: functions of the incumbent: for one point, and, with the unit of f, for batches.
        nonnegative: whether each of the two is nonnegative, and may be zero in much of a space.
        has_units: whether their values are in units of the observations.
    """

    options: ImprovementOptions
    closed_form: ClassVar[Callable[[Tensor], ClosedForm]]
    integrand: ClassVar[Callable[[Tensor, float], Integrand]]
    nonnegative: ClassVar[tuple[bool, bool]] = (False, False)
    has_units: ClassVar[bool] = False

    def utility(self, surrogate: GP, round: Round) -> AcquisitionFunction:
        """Return the closed form at q = 1, the Monte Carlo estimate otherwise."""
        best = self.threshold(surrogate, round.data)
        scale = surrogate.standardisation.scale
        unit = scale if self.has_units else 1.0
        if round.q == 1:
            return AnalyticAcquisition(surrogate, type(self).closed_form(best), self.nonnegative[0], unit)
        integrand = type(self).integrand(best, scale)
        return MonteCarloAcquisition(
            surrogate, integrand, self.options.mc_samples, round.seed, self.nonnegative[1], unit
        )

    def threshold(self, surrogate: GP, data: History) -> Tensor:
        """Return the value to improve on: the best observation plus the jitter."""
        return improvement_threshold(data, self.options.jitter)


@methods.register("ei", ImprovementOptions)
class ExpectedImprovementMethod(ImprovementMethod):
    """Expected improvement over the best observation, in closed form at q = 1."""

    closed_form = expected_improvement
    integrand = batch_expected_improvement
    nonnegative = (True, True)
    has_units = True


@methods.register("logei", ImprovementOptions)
class LogExpectedImprovementMethod(ImprovementMethod):
    """The logarithm of expected improvement: the same maximiser without vanishing gradients."""

    closed_form = log_expected_improvement
    integrand = log_batch_improvement


@methods.register("plug-in-ei", ImprovementOptions)
class PlugInExpectedImprovementMethod(ExpectedImprovementMethod):
    """Expected improvement over the greatest posterior mean at observed points, free of the noise in the best one.

    Vazquez et al. (2008). Their incumbent is the greatest mean anywhere; that at observed points needs no search, and
    is at most as large.
    """

    def threshold(self, surrogate: GP, data: History) -> Tensor:
        """Return the greatest mean at observed points plus the jitter."""
        with torch.no_grad():
            mean, _ = surrogate.posterior_moments(data.X, joint=False)
        return improvement_threshold(data, self.options.jitter, mean.max())


@methods.register("pi", ImprovementOptions)
class ProbabilityOfImprovementMethod(ImprovementMethod):
    """Probability of improvement (its logarithm is maximised: the same maximiser)."""

    closed_form = log_probability_of_improvement
    integrand = batch_probability_of_improvement
    nonnegative = (False, True)


@methods.register("ucb", ConfidenceBoundOptions)
class UpperConfidenceBoundMethod(IncumbentGPMethod):
    """Upper confidence bound: a level alpha, a fixed multiple of the standard deviation, or a theoretical schedule."""

    options: ConfidenceBoundOptions

    def utility(self, surrogate: GP, round: Round) -> AcquisitionFunction:
        """Return (q)UCB."""
        sqrt_beta = self.sqrt_beta(len(round.history), len(round.history.queries))
        unit = surrogate.standardisation.scale
        if round.q == 1:
            return AnalyticAcquisition(surrogate, upper_confidence_bound(sqrt_beta), unit=unit)
        integrand = batch_upper_confidence_bound(sqrt_beta)
        return MonteCarloAcquisition(surrogate, integrand, self.options.mc_samples, round.seed, unit=unit)

    def sqrt_beta(self, n: int, queries: int = 0) -> float:
        """Return the multiple of the standard deviation after `n` observations, `queries` of them queried."""
        if self.options.schedule is not None:
            return self.options.schedule.sqrt_beta(queries + 1, self.domain.space.dim, self.domain.space.size)
        if self.options.sqrt_beta is not None:
            return self.options.sqrt_beta
        level = torch.tensor(1 - alpha_at(self.options.alpha, n) / 2, dtype=torch.float64)
        return float(torch.special.ndtri(level))


@methods.register("nei", IncumbentGPOptions)
class NoisyExpectedImprovementMethod(IncumbentGPMethod):
    """Noisy expected improvement: the best value so far is uncertain (BoTorch's qLogNEI)."""

    options: IncumbentGPOptions

    def utility(self, surrogate: GP, round: Round) -> AcquisitionFunction:
        """Return qLogNEI."""
        return noisy_improvement(surrogate, round.data.X, self.options.mc_samples, round.seed)
