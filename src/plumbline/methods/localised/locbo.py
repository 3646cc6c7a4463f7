"""LOCBO: sets whose level is corrected online, where the misses happen."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from plumbline.core.vjp import with_vjp
from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.base import Domain, methods
from plumbline.methods.composed import Choice, Round
from plumbline.methods.localised.as_published import Extremes, Inside, Integral, ScriptedImprovement, Tails
from plumbline.methods.localised.forecasts import LocalisedPredictive, QuantilePredictive
from plumbline.methods.localised.law import Slopes
from plumbline.methods.localised.online import OnlineAcquisition, OnlineMethod, OnlineMethodOptions, WithSlopes
from plumbline.methods.localised.posterior import CalibratedPosterior
from plumbline.methods.localised.thresholds import CoverageBound
from plumbline.methods.localised.variants import CODE, DEPARTURES, OnlineDeparture, PosteriorDeparture
from plumbline.methods.variants import Json, Variant
from plumbline.models.gp.process import GP

NO_INCUMBENT = -100.0
"""What LOCBO's radio script would improve on in its first round, standardised."""


class LocalisedOptions(OnlineMethodOptions):
    """Options of LOCBO.

    Attributes:
        alpha: target share of observations outside their sets.
    """

    alpha: float = Field(default=0.2, gt=0.0, lt=1.0)


class LocalisedImprovementOptions(LocalisedOptions):
    """Options of LOCBO with expected improvement; `variant` sets them, which are departures of the published scripts.

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
        asked = (self.tails, self.inside, self.extremes, self.integral, self.label_mean)
        return asked != ("equation-29", "uniform", "clipped", "exact", "fitted")


class LocalisedBoundOptions(LocalisedOptions):
    """Options of the upper confidence bound under LOCBO's posterior.

    Attributes:
        level: of the quantile of `f`; `1 - alpha / 2` where none is given, as of plain UCB.
    """

    level: float | None = Field(default=None, gt=0.5, lt=1.0)


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

    def notes(self, choice: Choice[GP], round: Round) -> dict[str, float]:
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

    def kept(self, raw: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the threshold, which is not kept in (0, 1] where the scripts' rules are asked for."""
        return super().kept(raw) if self.options.extremes == "clipped" else (raw, lambda grad_kept: grad_kept)

    def incumbent(self, surrogate: GP, round: Round) -> Tensor:
        """Return the observation to improve on, standardised."""
        if self.options.incumbent == "all":
            return super().incumbent(surrogate, round)
        asked = surrogate.standardisation.outputs(round.data.Y[round.data.initial :])
        return asked.max() if len(asked) else round.data.Y.new_tensor(NO_INCUMBENT)

    def value(self, best: Tensor, noise: Tensor, round: Round) -> WithSlopes:
        """Return the expected gain over the best observation; eq. 30, or as a published script has it."""
        asked = self.options
        if not asked.scripted:
            return of_posterior(noise, asked.alpha, lambda made: made.expected_improvement_with_slopes(best))
        draws = torch.Generator().manual_seed(round.seed) if asked.integral == "redrawn" else None
        gain = ScriptedImprovement(asked.alpha, asked.tails, asked.inside, asked.extremes, draws)

        def closed_form(mean: Tensor, sd: Tensor, thresholds: Tensor, *other: Tensor) -> Tensor:
            return gain(mean, sd.square() + noise, noise.expand_as(mean), thresholds.squeeze(-1), best, *other)

        return automatic(closed_form)

    def utility_of(self, process: GP, value: WithSlopes) -> OnlineAcquisition:
        """Return a utility under a process and the thresholds as they are."""
        if self.options.label_mean == "fitted":
            return super().utility_of(process, value)
        other = replace(process, at=process.at._replace(constant=0.0))
        return OnlineAcquisition(process, self.thresholds_with_vjp, value, other)


@methods.register("locbo-ucb", LocalisedBoundOptions)
class LocalisedBoundMethod(LocalisedMethod):
    """LOCBO with an upper confidence bound, a quantile of its posterior; not in the paper."""

    options: LocalisedBoundOptions

    def value(self, best: Tensor, noise: Tensor, round: Round) -> WithSlopes:
        """Return the quantile of `f`, whatever the best observation is."""
        level = best.new_tensor(self.options.level or 1 - self.options.alpha / 2)
        return of_posterior(noise, self.options.alpha, lambda made: made.quantile_with_slopes(level))


def of_posterior(
    noise: Tensor, alpha: float, value: Callable[[CalibratedPosterior], tuple[Tensor, Slopes]]
) -> WithSlopes:
    """Return a utility of LOCBO's posterior (eq. 29), with its derivatives, as one of moments and thresholds."""

    def closed_form(mean: Tensor, sd: Tensor, thresholds: Tensor) -> tuple[Tensor, Slopes]:
        made = CalibratedPosterior(mean, sd.square() + noise, noise, thresholds.squeeze(-1), alpha)
        found, of_posterior = value(made)

        def slopes() -> tuple[Tensor, ...]:
            grad_mean, grad_sd, grad_threshold = of_posterior()
            return grad_mean, grad_sd, grad_threshold.unsqueeze(-1)

        return found, slopes

    return closed_form


def automatic(value: Callable[..., Tensor]) -> WithSlopes:
    """Return a utility with derivatives that are taken automatically."""

    def closed_form(*moments: Tensor) -> tuple[Tensor, Slopes]:
        found, vjp = with_vjp(value, *moments)
        return found, lambda: vjp(torch.ones_like(found))

    return closed_form
