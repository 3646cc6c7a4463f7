"""Bayesian optimisation with online conformal prediction: LOCBO, and OCBO with and without localisation."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from plumbline.acquisition.differentiated import Differentiated
from plumbline.acquisition.localised import CalibratedPosterior
from plumbline.acquisition.localised_as_published import Extremes, Inside, Integral, ScriptedImprovement, Tails
from plumbline.calibration.coverage_bounds import CoverageBound
from plumbline.calibration.localised_predictive import LocalisedPredictive
from plumbline.calibration.online import OnlineOptions, OnlineThreshold
from plumbline.calibration.predictive import GaussianPredictive
from plumbline.calibration.quantile_predictive import QuantilePredictive
from plumbline.calibration.quantile_recalibration import (
    RecalibratedPredictive,
    ReweightedGaussian,
    levels,
    monotone,
)
from plumbline.errors import PlumblineError
from plumbline.history import History
from plumbline.methods.base import Domain, Proposal, methods
from plumbline.methods.composed import Choice, ComposedMethod, Round
from plumbline.methods.gp import GPOptions, gaussian_predictor
from plumbline.methods.judging import Judging, judged
from plumbline.methods.refits import Refits
from plumbline.models.exact_process import ExactProcess, ModelOptions
from plumbline.pull_back import PullBack, with_pull_back
from plumbline.seeding import draw_seed

NO_INCUMBENT = -100.0
"""What LOCBO's radio script would improve on in its first round, standardised."""


class OnlineMethodOptions(GPOptions):
    """Options of every method with online conformal prediction.

    Attributes:
        model: maximum likelihood, one lengthscale for all inputs: LOCBO, eq. 38.
        online: of the threshold.
        units: what the lengthscale of the threshold's kernel is measured in: the problem's, or sides of the unit cube.
        judging: by which forecast an observation is found to be covered or missed.
        refit_every: hyperparameters are fitted in rounds that this divides, and are at their initial values before; in
            other rounds data are added alone.
    """

    model: ModelOptions = ModelOptions(priors="none", ard=False)
    online: OnlineOptions = OnlineOptions()
    units: Literal["problem", "cube"] = "problem"
    judging: Judging = "before"
    refit_every: PositiveInt = 1


class LocalisedOptions(OnlineMethodOptions):
    """Options of LOCBO.

    Attributes:
        alpha: target share of observations outside their sets.
    """

    alpha: float = Field(default=0.2, gt=0.0, lt=1.0)


class LocalisedImprovementOptions(LocalisedOptions):
    """Options of LOCBO with expected improvement; but for the defaults they are departures of its published scripts.

    Attributes:
        tails: of the posterior: of eq. 29, or as coded in both scripts.
        inside: the density of labels in the set: uniform, or as coded in the radio script, `1 / u - l`.
        extremes: what is made of thresholds outside of (0, 1): see `ScriptedImprovement`. The radio script also judges
            coverage by `2 - lambda` where `lambda` is above 1.
        integral: `exact`, or estimated from 64 values of f redrawn at every call, as in the Ackley script.
        label_mean: what f given a label regresses to: the mean of f, or, as in both scripts, what that would be if the
            constant mean were zero.
        incumbent: the best observation: of all, or of those that were asked for, -100 (standardised) before the first,
            as in the radio script.
    """

    tails: Tails = "equation-29"
    inside: Inside = "uniform"
    extremes: Extremes = "clipped"
    integral: Integral = "exact"
    label_mean: Literal["fitted", "zero"] = "fitted"
    incumbent: Literal["all", "queries"] = "all"

    @property
    def scripted(self) -> bool:
        """Whether the expected improvement is not that of the text."""
        asked = (self.tails, self.inside, self.extremes, self.integral, self.label_mean)
        return asked != ("equation-29", "uniform", "clipped", "exact", "fitted")


class LocalisedBoundOptions(LocalisedOptions):
    """Options of the upper confidence bound under LOCBO's posterior.

    Attributes:
        level: of the quantile of `f`; `1 - alpha / 2` where none is given, as of plain UCB.
    """

    level: float | None = Field(default=None, gt=0.5, lt=1.0)


class RecalibratedOptions(OnlineMethodOptions):
    """Options of OCBO, whose localised version has `kappa > 0`.

    Attributes:
        levels: how many quantile levels are recalibrated, equally spaced.
    """

    levels: PositiveInt = 19


class OnlineUtility(Differentiated):
    """A utility of what a process says of f at a point, and of the thresholds there, in standardised units."""

    def __init__(
        self,
        process: ExactProcess,
        thresholds: Callable[[Tensor], Tensor],
        value: Callable[..., Tensor],
        other: ExactProcess | None = None,
    ) -> None:
        """Make the utility.

        Args:
            process: in any units.
            thresholds: maps `b x d` points to `b x M`.
            value: maps the mean of `f`, its variance, the noise variance (each `b`) and the thresholds to utilities.
            other: a process of the same data, whose mean (`b`) comes last where there is one.
        """
        super().__init__(process.model)
        self.process = process
        self.thresholds = thresholds
        self.value = value
        self.other = other

    def values(self, X: Tensor) -> Tensor:
        """Return the utilities of `b x 1 x d` points: `b`."""
        points = X.squeeze(-2)
        seen = self.process.at_points(points)
        noise = self.process.noise.expand_as(seen.location)
        more = [] if self.other is None else [self.other.at_points(points).location]
        return self.value(seen.location, seen.spread.square(), noise, self.thresholds(points), *more)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the utilities of `b x 1 x d` points, `b`, and their derivatives, `b x 1 x d`.

        Those of the process are by hand; of a law that is a quadrature, and of the thresholds, automatic: their
        operations are few and small.
        """
        points = X.squeeze(-2)
        with torch.no_grad():
            seen = self.process.at_points(points)
            noise = self.process.noise.expand_as(seen.location)
            thresholds, pull_thresholds = with_pull_back(self.thresholds, points)
            others = [] if self.other is None else [self.other.at_points(points)]
            more = [other.location for other in others]
            value, pull = with_pull_back(self.value, seen.location, seen.spread.square(), noise, thresholds, *more)
            to_location, to_variance, _, to_thresholds, *to_more = pull(torch.ones_like(value))
            (to_points,) = pull_thresholds(to_thresholds)
            gradient = seen.pull_back_standardised(to_location, 2 * seen.spread * to_variance) + to_points
            for other, to_other in zip(others, to_more, strict=True):
                gradient = gradient + other.pull_back_standardised(to_other, torch.zeros_like(to_other))
        return value, gradient.unsqueeze(-2)


@dataclass(frozen=True)
class CalibratedPredictor:
    """Forecasts of a process, calibrated.

    Attributes:
        process: whose forecasts they are.
        calibrated: maps its forecasts at points (`n x d`) to calibrated ones.
    """

    process: ExactProcess
    calibrated: Callable[[GaussianPredictive, Tensor], QuantilePredictive]

    def __call__(self, points: Tensor) -> QuantilePredictive:
        """Return the forecast of observations at `n x d` points."""
        with torch.no_grad():
            return self.calibrated(gaussian_predictor(self.process)(points), points)


class OnlineMethod(ComposedMethod[ExactProcess]):
    """The loop with online thresholds; a subclass says what they recalibrate, and which utility is maximised.

    The threshold that an observation is judged by is the one that was in force when its point was asked for. In a
    batch, points are chosen one after another, each as if those before it had come out at their means; their
    observations then update the threshold in the same order, each judged by the set that it was promised (or by
    another one that `judging` asks for).
    """

    takes = "one objective"
    options: OnlineMethodOptions

    def __init__(self, domain: Domain, options: OnlineMethodOptions) -> None:
        super().__init__(domain, options)
        self.threshold = OnlineThreshold.start(options.online, self.targets(), domain.bounds.shape[1])
        self.refits = Refits(options.refit_every, options.model, domain.bounds)
        self.promised: CalibratedPredictor | None = None

    @abstractmethod
    def targets(self) -> Tensor:
        """Return what the thresholds start at and aim for: `M`."""

    @abstractmethod
    def events(self, forecast: QuantilePredictive, y: Tensor) -> Tensor:
        """Return which events of the thresholds the observations `y` (`q`) are: `q x M`."""

    @abstractmethod
    def calibrated(self, plain: GaussianPredictive, X: Tensor) -> QuantilePredictive:
        """Return the calibrated forecast of observations at `X` (`n x d`)."""

    @abstractmethod
    def value(self, best: Tensor, round: Round) -> Callable[..., Tensor]:
        """Return the utility that `OnlineUtility` wants; `best` is the greatest observation, standardised."""

    def fit(self, data: History) -> ExactProcess:
        """Return the process of what has been observed."""
        return self.refits.process(data)

    def incumbent(self, surrogate: ExactProcess, round: Round) -> Tensor:
        """Return the observation to improve on, standardised."""
        return surrogate.units.outputs(round.data.Y).max()

    def utility(self, surrogate: ExactProcess, round: Round) -> OnlineUtility:
        """Return the utility under the thresholds as they are; LOCBO, Algorithm 1."""
        return self.utility_of(surrogate, self.value(self.incumbent(surrogate, round), round))

    def utility_of(self, process: ExactProcess, value: Callable[..., Tensor]) -> OnlineUtility:
        """Return a utility under a process and the thresholds as they are."""
        return OnlineUtility(process, self.thresholds_at, value)

    def search(self, utility: OnlineUtility, surrogate: ExactProcess, round: Round) -> Choice[ExactProcess]:
        """Return points chosen one after another, each as if those before it had come out at their means."""
        space = round.space.settle(round.history, round.generator)
        chosen = round.data.X.new_empty(0, space.dim)
        process, believed = surrogate, utility
        for _ in range(int(min(round.q, space.size))):
            seed = draw_seed(round.generator)
            x = space.maximise(believed, 1, self.options.search, seed)
            space = space.without(x)
            chosen = torch.cat([chosen, x])
            if len(chosen) < round.q:
                process = believing(process, x)
                believed = self.utility_of(process, utility.value)
        return Choice(chosen, utility, surrogate)

    def promise(self, proposal: Proposal) -> None:
        """Remember the sets that are promised."""
        self.promised = cast(CalibratedPredictor, proposal.predict)

    def predictive(self, surrogate: ExactProcess) -> CalibratedPredictor:
        """Return the model's predictions, calibrated with the thresholds as they are."""
        return CalibratedPredictor(surrogate, self.calibrated)

    def lengthscales(self, surrogate: ExactProcess) -> Tensor:
        """Return the lengthscales of the kernel."""
        return surrogate.lengthscale_in(self.domain.bounds)

    def tell(self, X: Tensor, Y: Tensor) -> None:
        """Move the thresholds. What is told without being asked for belongs to the initial design.

        Raises:
            PlumblineError: an observation that is infinite, by which no set can be judged.
        """
        promised, self.promised = self.promised, None
        if promised is None:
            return
        y = Y.squeeze(-1)
        if bool(torch.isinf(y).any()):
            raise PlumblineError(
                f"observations {y.tolist()} cannot be judged: they must be finite, or NaN if they failed"
            )
        process, stand_ins = judged(self.options.judging, promised.process, X, y)
        found = self.events(self.predictive(process)(X), stand_ins)
        for x, events, failed in zip(self.located(X), found, y.isnan().tolist(), strict=True):
            if not failed:
                self.threshold = self.threshold.update(x, events)

    def located(self, X: Tensor) -> Tensor:
        """Return points (`... x d`) in the units of the threshold's kernel."""
        if self.options.units == "problem":
            return X
        low, high = self.domain.bounds
        return (X - low) / (high - low)

    def thresholds_at(self, X: Tensor) -> Tensor:
        """Return the thresholds that sets are made with, at `... x d`: `... x M`."""
        return self.threshold(self.located(X))

    def state_dict(self) -> dict[str, Any]:
        """Return the thresholds."""
        return self.threshold.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with the same thresholds."""
        if state:
            self.threshold = self.threshold.restored(state)


def believing(process: ExactProcess, x: Tensor) -> ExactProcess:
    """Return the process as if `x` (`1 x d`) had been observed to be what it expects (kriging believer).

    Ginsbourger, Le Riche & Carraro, Kriging is well-suited to parallelize optimization (2010).
    """
    expected, _ = process.moments(x, joint=False)
    return process.joined(x, expected.unsqueeze(-1))


class LocalisedMethod(OnlineMethod):
    """LOCBO: a set about the model's mean whose level is corrected online, where the misses happen."""

    options: LocalisedOptions

    def __init__(self, domain: Domain, options: LocalisedOptions) -> None:
        super().__init__(domain, options)
        self.bound = CoverageBound.of(options.online, options.alpha, self.located(domain.bounds))

    def targets(self) -> Tensor:
        """Return the one level of the sets."""
        return torch.tensor([self.options.alpha], dtype=torch.float64)

    def events(self, forecast: QuantilePredictive, y: Tensor) -> Tensor:
        """Return which observations lie outside their sets; eq. 24, by thresholds that may leave (0, 1]."""
        return 1 - forecast.covers(y, self.options.alpha).unsqueeze(-1)

    def calibrated(self, plain: GaussianPredictive, X: Tensor) -> LocalisedPredictive:
        """Return the calibrated likelihood; eq. 28."""
        threshold = self.threshold.unclipped(self.located(X)).squeeze(-1)
        return LocalisedPredictive(plain.mean, plain.sd, threshold, self.options.alpha)

    def posterior(self, mean: Tensor, variance: Tensor, noise: Tensor, thresholds: Tensor) -> CalibratedPosterior:
        """Return the calibrated posterior of `f`; eq. 29."""
        return CalibratedPosterior(mean, variance + noise, noise, thresholds.squeeze(-1), self.options.alpha)

    def notes(self, choice: Choice[ExactProcess], round: Round) -> dict[str, float]:
        """Return the threshold at the points, the share of observations before that were found to be missed, and what
        the lemmas promise of the observations up to these. Nothing is noted of what is unknown or infinite."""
        X = choice.X
        raw = self.threshold.unclipped(self.located(X))
        rounds = len(self.threshold.centres) + len(X)
        found = {
            "threshold": float(self.threshold(self.located(X)).mean()),
            "clipped_thresholds": float(((raw <= 0) | (raw >= 1)).double().mean()),
            "counted_misses": self.counted_misses(),
            "bound_beta": self.bound.beta,
            "bound_kappa": self.bound.kappa,
            "bound_rho": self.bound.rho,
            "bound_diameter": self.bound.diameter,
            "bound_y": self.bound.of_observations(rounds),
            "bound_f": self.bound.of_function(rounds),
        }
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def counted_misses(self) -> float:
        """Return the share of observations that the threshold took for misses; NaN before any, or if it never moves."""
        steps = self.threshold.coefficients
        return float((steps < 0).double().mean()) if bool((steps != 0).any()) else math.nan


@methods.register("locbo", LocalisedImprovementOptions)
class LocalisedImprovementMethod(LocalisedMethod):
    """LOCBO with expected improvement, in closed form and one smooth quadrature."""

    options: LocalisedImprovementOptions

    def calibrated(self, plain: GaussianPredictive, X: Tensor) -> LocalisedPredictive:
        """Return the calibrated likelihood; eq. 28."""
        found = super().calibrated(plain, X)
        if self.options.extremes != "radio-script":
            return found
        return replace(found, threshold=torch.minimum(found.threshold, 2 - found.threshold))

    def thresholds_at(self, X: Tensor) -> Tensor:
        """Return the threshold at `... x d`, `... x 1`; not kept in (0, 1] where the scripts' rules are asked for."""
        if self.options.extremes == "clipped":
            return super().thresholds_at(X)
        return self.threshold.unclipped(self.located(X))

    def incumbent(self, surrogate: ExactProcess, round: Round) -> Tensor:
        """Return the observation to improve on, standardised."""
        if self.options.incumbent == "all":
            return super().incumbent(surrogate, round)
        asked = surrogate.units.outputs(round.data.Y[round.data.initial :])
        return asked.max() if len(asked) else round.data.Y.new_tensor(NO_INCUMBENT)

    def value(self, best: Tensor, round: Round) -> Callable[..., Tensor]:
        """Return the expected gain over the best observation; eq. 30, or as a published script has it."""
        asked = self.options
        if not asked.scripted:
            return lambda *moments: self.posterior(*moments).expected_improvement(best)
        draws = torch.Generator().manual_seed(round.seed) if asked.integral == "redrawn" else None
        gain = ScriptedImprovement(asked.alpha, asked.tails, asked.inside, asked.extremes, draws)
        return lambda mean, variance, noise, thresholds, *other: gain(
            mean, variance + noise, noise, thresholds.squeeze(-1), best, *other
        )

    def utility_of(self, process: ExactProcess, value: Callable[..., Tensor]) -> OnlineUtility:
        """Return a utility under a process and the thresholds as they are."""
        if self.options.label_mean == "fitted":
            return super().utility_of(process, value)
        other = replace(process, at=process.at._replace(constant=0.0))
        return OnlineUtility(process, self.thresholds_at, value, other)


@methods.register("locbo-ucb", LocalisedBoundOptions)
class LocalisedBoundMethod(LocalisedMethod):
    """LOCBO with an upper confidence bound, a quantile of its posterior; not in the paper."""

    options: LocalisedBoundOptions

    def value(self, best: Tensor, round: Round) -> Callable[..., Tensor]:
        """Return the quantile of `f`, whatever the best observation is."""
        level = self.options.level or 1 - self.options.alpha / 2
        return lambda *moments: self.posterior(*moments).quantile(best.new_tensor(level))


@methods.register("ocbo", RecalibratedOptions)
class RecalibratedMethod(OnlineMethod):
    """OCBO: expected improvement with quantiles that are recalibrated online; OCBO-L where `online.kappa > 0`."""

    options: RecalibratedOptions

    def targets(self) -> Tensor:
        """Return the levels of the quantiles."""
        return levels(self.options.levels)

    def events(self, forecast: QuantilePredictive, y: Tensor) -> Tensor:
        """Return which quantiles the observations do not exceed."""
        at = self.targets().unsqueeze(-1).expand(-1, len(y))
        return (y <= forecast.quantile(at)).to(y.dtype).mT

    def calibrated(self, plain: GaussianPredictive, X: Tensor) -> RecalibratedPredictive:
        """Return the recalibrated forecast; eq. 20."""
        return RecalibratedPredictive(
            ReweightedGaussian(plain.mean, plain.sd, self.threshold.targets, self.thresholds_at(X))
        )

    def thresholds_at(self, X: Tensor) -> Tensor:
        """Return the recalibrated levels at `... x d`: `... x M`."""
        return monotone(self.threshold.unclipped(self.located(X)))

    def value(self, best: Tensor, round: Round) -> Callable[..., Tensor]:
        """Return the expected gain over the best observation: the method takes observations for the function."""
        return RecalibratedImprovement(self.threshold.targets, best)


@dataclass(frozen=True)
class RecalibratedImprovement:
    """The expected gain of an observation over `best` under a recalibrated forecast.

    Attributes:
        targets: `M`, the levels that quantiles are to have.
        best: a number, standardised.
    """

    targets: Tensor
    best: Tensor

    def __call__(self, mean: Tensor, variance: Tensor, noise: Tensor, R: Tensor) -> Tensor:
        """Return the gain, `b`, of the moments of f and of the noise (`b`) and the recalibrated levels (`b x M`)."""
        return self.with_pull_back(mean, variance, noise, R)[0]

    def with_pull_back(self, mean: Tensor, variance: Tensor, noise: Tensor, R: Tensor) -> tuple[Tensor, PullBack]:
        """Return the gain, and what pulls gradients back to all of its inputs."""
        sd = (variance + noise).sqrt()
        forecast = ReweightedGaussian(mean, sd, self.targets, R)
        value, to_mean, to_sd, to_R = forecast.expected_improvement_with_slopes(self.best)

        def pull_back(to_value: Tensor) -> tuple[Tensor, ...]:
            to_variance = to_value * to_sd / (2 * sd)
            return to_value * to_mean, to_variance, to_variance, to_value.unsqueeze(-1) * to_R

        return value, pull_back
