"""LOCBO's expected improvement as its published scripts compute it: departures from the text, one by one.

The scripts add up two parts of a posterior of f, of labels inside the set and of labels beyond it, and integrate the
gain over each. Both parts are laws of `acquisition.localised_law`, weighted: the tails as coded are those of another
model, whose labels have standard deviation `sqrt(2) S^2` and whose values have `sqrt(2) s^2 / g` given a label, because
eq. 45 takes squares of what is squared already (docs/methods/localised-erratum.md derives it).
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Generator, Tensor
from torch.special import ndtri

from plumbline.core.history import History
from plumbline.forecasts import gaussian
from plumbline.methods.localised.law import StandardLaw
from plumbline.methods.localised.posterior import CalibratedPosterior
from plumbline.models.gp.fit import ModelOptions, fit_process, unknowns_of
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned
from plumbline.models.standardisation import standardisation_of

Tails = Literal["equation-29", "as-coded"]
Inside = Literal["uniform", "as-coded"]
Extremes = Literal["clipped", "ackley-script", "radio-script"]
Integral = Literal["exact", "redrawn"]

WIDEST = 3.4
"""Half the length of the set, in standard deviations, where the threshold is not positive."""

DRAWS, END = 64, 5.0
"""How many values of f an integral is estimated from, and the greatest of them, standardised."""


@dataclass(frozen=True)
class InsideLaw:
    """Law of a value whose label is uniform in `[-zeta, zeta]`, in the standard units of `StandardLaw`.

    Attributes:
        rho, tau, zeta: of that law.
    """

    rho: Tensor
    tau: Tensor
    zeta: Tensor

    def density(self, u: Tensor) -> Tensor:
        """Return the density at `u`."""
        return gaussian.mean_density(u / self.tau, self.rho * self.zeta / self.tau) / self.tau

    def gain(self, c: Tensor) -> Tensor:
        """Return `E [c + U]+`."""
        return self.tau * gaussian.mean_ramp(c / self.tau, self.rho * self.zeta / self.tau)


@dataclass(frozen=True)
class Part:
    """Part of a posterior of f at points of any shape; attributes and arguments broadcast.

    Attributes:
        weight: what the law is multiplied by.
        location, scale: of its standard units.
        law: of labels inside the set, or beyond it: with `alpha = threshold = 1`, so that it is no distribution.
        mass: of the law.
    """

    weight: Tensor
    location: Tensor
    scale: Tensor
    law: InsideLaw | StandardLaw
    mass: Tensor

    def density(self, f: Tensor) -> Tensor:
        """Return the density at `f`."""
        return self.weight * self.law.density((f - self.location) / self.scale) / self.scale

    def expected_improvement(self, best: Tensor) -> Tensor:
        """Return the integral of the gain over `best`."""
        c = (self.location - best) / self.scale
        # Of `c > 0` the law's own gain is that of `-c` and c more, as if its mass were one.
        return self.weight * self.scale * (self.law.gain(c) - c.clamp_min(0.0) * (1 - self.mass))

    def estimated_improvement(self, best: Tensor, generator: Generator) -> Tensor:
        """Return the same by plain Monte Carlo with uniform values of f between `best` and `END`."""
        chance = torch.rand((DRAWS, *self.weight.shape), generator=generator, dtype=self.weight.dtype)
        reach = (END - best).clamp_min(0.0)
        return reach * (self.density(best + reach * chance) * reach * chance).mean(dim=0)


@dataclass(frozen=True)
class ScriptedImprovement:
    """Expected improvement with departures of the published scripts.

    Attributes:
        alpha: the mass that the posterior puts beyond the set.
        tails: the labels beyond the set by eq. 29, or as both scripts have them.
        inside: the density of labels in the set `[l, u]`: `1 / (u - l)`, or `1 / u - l` as in the radio script, whose
            value depends on where zero is: that of standardised units.
        extremes: of thresholds: `clipped` ones are in (0, 1]. In both scripts one that is not positive drops the
            tails; the set then is 3.4 standard deviations to either side in the Ackley script, and the whole line in
            the radio script, whose density is 0 or, where it is `1 / u - l`, infinite. One above 1 swaps the ends of
            the set: labels in between are uniform all the same, and beyond either end they overlap.
        draws: of the estimate by draws, anew at each call, which the gradient in the threshold is not part of; None
            for the integral itself.
    """

    alpha: float
    tails: Tails = "equation-29"
    inside: Inside = "uniform"
    extremes: Extremes = "clipped"
    draws: Generator | None = None

    def __call__(
        self,
        mean: Tensor,
        variance: Tensor,
        noise: Tensor,
        threshold: Tensor,
        best: Tensor,
        other_mean: Tensor | None = None,
    ) -> Tensor:
        """Return the expected gain over `best`.

        Args:
            mean: predictive mean, standardised; any shape, as of all others.
            variance: predictive variance of an observation, noise included.
            noise: noise variance.
            threshold: of the set; below 2.
            best: a number.
            other_mean: what the mean of f given a label regresses to in the place of `mean`.
        """
        if self.draws is not None:
            threshold = threshold.detach()
        within, beyond = self.parts(mean, variance, noise, threshold, other_mean)
        if self.draws is not None:
            value = within.estimated_improvement(best, self.draws) + beyond.estimated_improvement(best, self.draws)
        else:
            value = within.expected_improvement(best) + beyond.expected_improvement(best)
        if self.extremes == "radio-script":
            value = value.where(threshold > 0, 0.0 if self.inside == "uniform" else math.inf)
        return value

    def parts(
        self, mean: Tensor, variance: Tensor, noise: Tensor, threshold: Tensor, other_mean: Tensor | None = None
    ) -> tuple[Part, Part]:
        """Return the labels inside the set and those beyond it; arguments as above."""
        positive = threshold > 0
        safe = torch.where(positive, threshold, 1.0)
        zeta = torch.where(positive, -ndtri(safe / 2), WIDEST)
        model = CalibratedPosterior(mean, variance, noise, safe, self.alpha)
        one, sd = torch.ones_like(safe), variance.sqrt()
        rho, tau = model.gain.sqrt(), model.noise_share.sqrt()
        # Of f given the label in the middle of the set, about which everything is symmetric.
        middle = mean if other_mean is None else model.gain * mean + model.noise_share * other_mean

        uniform = InsideLaw(rho, tau, zeta.abs())
        stretch = self._stretch(mean - zeta * sd, mean + zeta * sd)
        within = Part((1 - self.alpha) * stretch, middle, model.sd_of_value(), uniform, one)

        share = torch.where(positive, self.alpha / safe, 0.0)
        if self.tails == "equation-29":
            gaussian_tails = StandardLaw(rho, tau, zeta, one, 1.0)
            return within, Part(share, middle, model.sd_of_value(), gaussian_tails, 2 * gaussian.cdf(-zeta))
        # Of the other model: standard deviations of labels, of values given a label, and of values.
        labels, given = math.sqrt(2) * variance, math.sqrt(2) * model.sd_given_label().square() / model.gain
        values = torch.hypot(model.gain * labels, given)
        reach = zeta * sd / labels
        coded = StandardLaw(model.gain * labels / values, given / values, reach, one, 1.0)
        excess = 2 * model.sd_given_label() * sd / model.gain
        return within, Part(share * excess, middle, values, coded, 2 * gaussian.cdf(-reach))

    def _stretch(self, low: Tensor, high: Tensor) -> Tensor:
        """Return what the density of labels between `low` and `high` is, where it should be uniform, as a multiple."""
        return torch.ones_like(low) if self.inside == "uniform" else (1 / high - low) * (high - low)


Judging = Literal["before", "standardised-with-it", "conditioned-on-it"]
"""What is judged of an observation that was asked for.

`before`: whether the set that was promised holds it, as LOCBO's algorithm 1 and its lemmas have it.
`standardised-with-it`: whether that set, in standardised units, holds the observation in units that are made with it,
as in LOCBO's published script for Ackley's function. `conditioned-on-it`: whether the set of the process that is
conditioned on it, at the same hyperparameters, holds it, as in that for the radio network.
"""


def judged(judging: Judging, process: GP, X: Tensor, y: Tensor) -> tuple[GP, Tensor]:
    """Return the process whose sets observations are judged by, and what stands for them.

    Args:
        judging: which of the three.
        process: that the points were chosen with.
        X: `q x d`.
        y: `q`, NaN where an evaluation failed.

    Returns:
        A process, and `q` numbers in the units of its observations.
    """
    if judging == "before":
        return process, y
    seen = y.isfinite()
    everything = torch.cat([process.standardisation.observations(process.y), y[seen]])
    standardisation = process.standardisation.standardising(everything)
    if judging == "standardised-with-it":
        return process, process.standardisation.observations(standardisation.outputs(y))
    U = torch.cat([process.U, process.standardisation.inputs(X[seen])])
    return replace(process, U=U, y=standardisation.outputs(everything), standardisation=standardisation), y


class RefitSchedule:
    """A process whose hyperparameters are fitted in every so many-th round; in others data are added to it alone.

    Before the first of these rounds hyperparameters are at their initial values. Everything follows from the history:
    a trial that was killed fits anew what it had fitted. The round is the number of the next query.
    """

    def __init__(self, every: int, options: ModelOptions, bounds: Tensor) -> None:
        """Fit in the rounds that `every` divides.

        Args:
            every: a number of rounds.
            options: kernel and priors.
            bounds: `2 x d`.
        """
        self.every = every
        self.options = options
        self.bounds = bounds
        self._last: tuple[History, Hyperparameters] | None = None

    def process(self, data: History) -> GP:
        """Return the process of what has been observed."""
        since = (len(data) - data.initial + 1) % self.every
        if since == 0:
            return fit_process(data.X, data.Y, self.bounds, self.options)
        standardisation = standardisation_of(self.options.box(self.bounds), data.Y[:, 0])
        return conditioned(data.X, data.Y, self.bounds, self.options.kernel, self._at(data, since), standardisation)

    def _at(self, data: History, since: int) -> Hyperparameters:
        """Return the hyperparameters that were fitted so many rounds before, or the initial ones."""
        n = len(data) - since
        if n < data.initial:
            unknowns = unknowns_of(data.X.shape[-1], self.options)
            return unknowns.values(unknowns.start())
        then = History(data.X[:n], data.Y[:n], data.initial)
        if self._last is None or not _same(self._last[0], then):
            self._last = then, fit_process(then.X, then.Y, self.bounds, self.options).at
        return self._last[1]


def _same(one: History, other: History) -> bool:
    return torch.equal(one.X, other.X) and torch.equal(one.Y, other.Y)
