"""LOCBO: prediction sets whose level is corrected online, most near the misses."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from plumbline.core.numbers import Array
from plumbline.core.vjp import with_vjp
from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.base import Domain, methods
from plumbline.methods.composed import Choice, Round
from plumbline.methods.localised.as_published import Extremes, Inside, Integral, ScriptedImprovement, Tails
from plumbline.methods.localised.forecasts import LocalisedPredictive, QuantilePredictive
from plumbline.methods.localised.law import Slopes
from plumbline.methods.localised.online import Form, OfParameters, OnlineAcquisition, OnlineMethod, OnlineMethodOptions
from plumbline.methods.localised.posterior import CalibratedPosterior
from plumbline.methods.localised.thresholds import CoverageBound, WithVjp, as_they_are
from plumbline.methods.localised.variants import CODE, DEPARTURES, OnlineDeparture, PosteriorDeparture
from plumbline.methods.variants import Json, Variant
from plumbline.models.gp.process import GP

NO_INCUMBENT = -100.0
"""The incumbent of LOCBO's radio script in its first round, standardised."""


class LocalisedOptions(OnlineMethodOptions):
    """Options of LOCBO.

    Attributes:
        alpha: target share of observations outside their sets.
    """

    alpha: float = Field(default=0.2, gt=0.0, lt=1.0)


class LocalisedImprovementOptions(LocalisedOptions):
    """Options of LOCBO with expected improvement; `variant` sets them, which are departures of the published scripts.

    Attributes:
        tails: tails of the posterior: eq. 29, or as coded in both scripts.
        inside: density of labels in the set: uniform, or as coded in the radio script, `1 / u - l`.
        extremes: treatment of thresholds outside (0, 1]; see `ScriptedImprovement`. The radio script also decides
            coverage by `2 - lambda` where `lambda` is above 1.
        integral: `exact`, or estimated from 64 values of f redrawn at every call, as in the Ackley script.
        label_mean: the mean that f given a label regresses to: that of f or, as in both scripts, the same under a
            constant mean of zero.
        incumbent: the best of all observations, or of the queried ones, as in the radio script: there it is -100
            (standardised) before the first query.
    """

    departures: ClassVar[Mapping[str, Json]] = DEPARTURES
    code: ClassVar[tuple[str, ...]] = CODE

    tails: Tails = "equation-29"
    inside: Inside = "uniform"
    extremes: Extremes = "clipped"
    integral: Integral = "exact"
    label_mean: Literal["fitted", "zero"] = "fitted"
    incumbent: Literal["all", "queries"] = "all"
    variant: Variant[OnlineDeparture | PosteriorDeparture] = "paper"  # type: ignore[assignment]

    @property
    def scripted(self) -> bool:
        """Whether the expected improvement is not that of the text."""
        options = (self.tails, self.inside, self.extremes, self.integral, self.label_mean)
        return options != ("equation-29", "uniform", "clipped", "exact", "fitted")


class LocalisedBoundOptions(LocalisedOptions):
    """Options of the upper confidence bound under LOCBO's posterior.

    Attributes:
        level: level of the quantile of `f`; None for `1 - alpha / 2`, as for plain UCB.
    """

    level: float | None = Field(default=None, gt=0.5, lt=1.0)


class LocalisedMethod(OnlineMethod):
    """LOCBO: a set about the model's mean whose level is corrected online, near the misses."""

    options: LocalisedOptions

    def __init__(self, domain: Domain, options: LocalisedOptions) -> None:
        super().__init__(domain, options)
        self.bound = CoverageBound.of(options.online, options.alpha, self.located(domain.bounds))

    def targets(self) -> Tensor:
        """Return the single level of the sets."""
        return torch.tensor([self.options.alpha], dtype=torch.float64)

    def events(self, forecast: QuantilePredictive, y: Tensor) -> Tensor:
        """Return 1 for observations outside their sets, else 0; eq. 24, by thresholds that may leave (0, 1]."""
        return 1 - forecast.covers(y, self.options.alpha).unsqueeze(-1)

    def calibrated(self, plain: GaussianPredictive, X: Tensor) -> LocalisedPredictive:
        """Return the calibrated likelihood; eq. 28."""
        threshold = self.threshold.unclipped(self.located(X)).squeeze(-1)
        return LocalisedPredictive(plain.mean, plain.sd, threshold, self.options.alpha)

    def notes(self, choice: Choice[GP], round: Round) -> dict[str, float]:
        """Return the threshold at the points, the share of earlier misses, and the lemmas' bounds up to this round.

        Unknown and infinite numbers are left out.
        """
        X = choice.X
        raw = self.threshold.unclipped(self.located(X))
        rounds = len(self.threshold.centres) + len(X)
        notes = {
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
        return {name: value for name, value in notes.items() if math.isfinite(value)}

    def counted_misses(self) -> float:
        """Return the share of observations that moved the threshold as misses; NaN before any, or if it never moves."""
        steps = self.threshold.coefficients
        return float((steps < 0).double().mean()) if bool((steps != 0).any()) else math.nan


@methods.register("locbo", LocalisedImprovementOptions)
class LocalisedImprovementMethod(LocalisedMethod):
    """LOCBO with expected improvement, in closed form and one smooth quadrature."""

    options: LocalisedImprovementOptions

    def calibrated(self, plain: GaussianPredictive, X: Tensor) -> LocalisedPredictive:
        """Return the calibrated likelihood; eq. 28."""
        forecast = super().calibrated(plain, X)
        if self.options.extremes != "radio-script":
            return forecast
        return replace(forecast, threshold=torch.minimum(forecast.threshold, 2 - forecast.threshold))

    @property
    def admissible(self) -> Callable[[Array], WithVjp]:
        """A function that clips thresholds, unless the rules of a script apply."""
        return super().admissible if self.options.extremes == "clipped" else as_they_are

    def incumbent(self, surrogate: GP, round: Round) -> Tensor:
        """Return the observation to improve on, standardised."""
        if self.options.incumbent == "all":
            return super().incumbent(surrogate, round)
        queried = surrogate.standardisation.outputs(round.data.Y[round.data.initial :])
        return queried.max() if len(queried) else round.data.Y.new_tensor(NO_INCUMBENT)

    def value(self, best: Tensor, noise: Tensor, round: Round) -> Form:
        """Return the expected improvement over the best observation: eq. 30, or that of a published script."""
        options = self.options
        if not options.scripted:
            return OfParameters(PosteriorImprovement(options.alpha), float(best), float(noise))
        draws = torch.Generator().manual_seed(round.seed) if options.integral == "redrawn" else None
        improvement = ScriptedImprovement(options.alpha, options.tails, options.inside, options.extremes, draws)

        def closed_form(mean: Tensor, sd: Tensor, thresholds: Tensor, *other: Tensor) -> Tensor:
            return improvement(mean, sd.square() + noise, noise.expand_as(mean), thresholds.squeeze(-1), best, *other)

        return automatic(closed_form)

    def acquisition(self, process: GP, form: Form) -> OnlineAcquisition:
        """Return the acquisition function under a process and the current thresholds."""
        if self.options.label_mean == "fitted":
            return super().acquisition(process, form)
        other = replace(process, at=process.at._replace(constant=0.0))
        return OnlineAcquisition(process, self.threshold_arrays, self.admissible, form, other)


@methods.register("locbo-ucb", LocalisedBoundOptions)
class LocalisedBoundMethod(LocalisedMethod):
    """LOCBO with an upper confidence bound, a quantile of its posterior; not in the paper."""

    options: LocalisedBoundOptions

    def value(self, best: Tensor, noise: Tensor, round: Round) -> Form:
        """Return the quantile of `f`, which does not depend on the best observation."""
        alpha = self.options.alpha
        return OfParameters(PosteriorQuantile(alpha, self.options.level or 1 - alpha / 2), float(noise))


@dataclass(frozen=True)
class PosteriorImprovement:
    """Expected improvement under LOCBO's posterior, eq. 30.

    Attributes:
        alpha: mass of the posterior outside the set.
    """

    alpha: float

    def __call__(
        self, mean: Array, sd: Array, thresholds: Array, best: Array, noise: Array
    ) -> tuple[Array, Slopes[Array]]:
        """Return values and derivatives; see `Form`."""
        posterior = CalibratedPosterior(mean, sd * sd + noise, noise, thresholds[..., 0], self.alpha)
        return of_each_threshold(*posterior.expected_improvement_with_slopes(best))


@dataclass(frozen=True)
class PosteriorQuantile:
    """A quantile of LOCBO's posterior.

    Attributes:
        alpha: mass of the posterior outside the set.
        level: of the quantile.
    """

    alpha: float
    level: float

    def __call__(self, mean: Array, sd: Array, thresholds: Array, noise: Array) -> tuple[Array, Slopes[Array]]:
        """Return values and derivatives; see `Form`."""
        posterior = CalibratedPosterior(mean, sd * sd + noise, noise, thresholds[..., 0], self.alpha)
        return of_each_threshold(*posterior.quantile_with_slopes(np.full_like(mean, self.level)))


def of_each_threshold(values: Array, slopes: Slopes[Array]) -> tuple[Array, Slopes[Array]]:
    """Return values with their derivatives, that in the only threshold with a dimension of thresholds."""

    def of_each() -> tuple[Array, ...]:
        grad_mean, grad_sd, grad_threshold = slopes()
        return grad_mean, grad_sd, grad_threshold[..., None]

    return values, of_each


def automatic(value: Callable[..., Tensor]) -> Form:
    """Return a function of tensors with automatic derivatives."""

    def form(*moments: Array) -> tuple[Array, Slopes[Array]]:
        values, vjp = with_vjp(value, *(torch.from_numpy(part) for part in moments))
        return values.numpy(), lambda: tuple(part.numpy() for part in vjp(torch.ones_like(values)))

    return form
