"""LOCBO's expected improvement as its published scripts compute it: departures from the text, one by one.

The scripts add two parts of a posterior of f, for labels inside and outside the set, and integrate the improvement over
each. Both parts are weighted laws of `localised.law`. The coded tails are those of another model: its labels have
standard deviation `sqrt(2) S^2`, and its values `sqrt(2) sigma^2 / g` given a label, with
`sigma^2` the variance of f given a label. The reason is that eq. 45
squares what is squared already (docs/methods/localised-erratum.md derives it).
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
"""Number of values of f that estimate an integral, and the greatest of them, standardised."""


@dataclass(frozen=True)
class InsideLaw:
    """Law of a value whose label is uniform in `[-zeta, zeta]`, in the standard units of `StandardLaw`.

    Attributes:
        rho, tau, zeta: as in that law.
    """

    rho: Tensor
    tau: Tensor
    zeta: Tensor

    @property
    def mass(self) -> float:
        """Mass of the law."""
        return 1.0

    def density(self, u: Tensor) -> Tensor:
        """Return the density at `u`."""
        return gaussian.mean_density(u / self.tau, self.rho * self.zeta / self.tau) / self.tau

    def improvement(self, c: Tensor) -> Tensor:
        """Return `E [c + U]+` for `c <= 0`."""
        return self.tau * gaussian.mean_ramp(c / self.tau, self.rho * self.zeta / self.tau)


@dataclass(frozen=True)
class OutsideLaw:
    """Law of a value whose label is Gaussian and outside `[-zeta, zeta]`, in the same units; not normalised.

    Attributes:
        rho, tau: as in `StandardLaw`.
        zeta: the same; negative where the ends of the set are swapped, so that labels between them count twice.
    """

    rho: Tensor
    tau: Tensor
    zeta: Tensor

    @property
    def mass(self) -> Tensor:
        """Mass of the law."""
        return 2 * gaussian.cdf(-self.zeta)

    def density(self, u: Tensor) -> Tensor:
        """Return the density at `u`."""
        return self._overlapping(gaussian.density(u), self._tails().density(u))

    def improvement(self, c: Tensor) -> Tensor:
        """Return `E [c + U]+` for `c <= 0`."""
        return self._overlapping(gaussian.ramp(c), self._tails().improvement(c))

    def _tails(self) -> StandardLaw[Tensor]:
        return StandardLaw(self.rho, self.tau, self.zeta.abs(), torch.ones_like(self.zeta), 1.0)

    def _overlapping(self, of_all: Tensor, of_tails: Tensor) -> Tensor:
        """Return what labels outside the set make of a value for all labels and one for those beyond both ends."""
        return torch.where(self.zeta < 0, 2 * of_all - of_tails, of_tails)


@dataclass(frozen=True)
class Part:
    """Part of a posterior of f at points of any shape; attributes and arguments broadcast.

    Attributes:
        weight: factor of the law.
        location, scale: standard units of the law.
        law: law of labels inside the set, or outside.
    """

    weight: Tensor
    location: Tensor
    scale: Tensor
    law: InsideLaw | OutsideLaw

    def density(self, f: Tensor) -> Tensor:
        """Return the density at `f`."""
        return self.weight * self.law.density((f - self.location) / self.scale) / self.scale

    def expected_improvement(self, best: Tensor) -> Tensor:
        """Return the integral of the improvement over `best`."""
        c = (self.location - best) / self.scale
        above = c > 0
        # By symmetry `[c + U]+` exceeds `[-c + U]+` by c on average, times a mass that may be next to nothing.
        tail = self.law.improvement(torch.where(above, -c, c))
        return self.weight * self.scale * (tail + self.law.mass * torch.where(above, c, 0.0))

    def estimated_improvement(self, best: Tensor, generator: Generator) -> Tensor:
        """Estimate the same by plain Monte Carlo with uniform values of f between `best` and `END`."""
        chance = torch.rand((DRAWS, *self.weight.shape), generator=generator, dtype=self.weight.dtype)
        reach = (END - best).clamp_min(0.0)
        return reach * (self.density(best + reach * chance) * reach * chance).mean(dim=0)


@dataclass(frozen=True)
class ScriptedImprovement:
    """Expected improvement with departures of the published scripts.

    Attributes:
        alpha: mass of the posterior outside the set.
        tails: density of labels outside the set: eq. 29, or as coded in both scripts.
        inside: density of labels in the set `[l, u]`: `1 / (u - l)`, or `1 / u - l` as in the radio script. The latter
            depends on the origin of the labels, here that of standardised units.
        extremes: treatment of thresholds outside (0, 1]: `clipped`, or as in a script. In both scripts the tails vanish
            at a threshold that is not positive. The set is then 3.4 standard deviations to either side in the Ackley
            script, and the whole line in the radio script, with density 0 or, for `1 / u - l`, infinity. A threshold
            above 1 swaps the ends of the set: labels between them remain uniform, and the tails overlap.
        draws: random generator of a new estimate at each call, without a gradient in the threshold; None for the exact
            integral.
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
        """Return the expected improvement over `best`.

        Args:
            mean: predictive mean, standardised; any shape, like all other arguments.
            variance: predictive variance of an observation, noise included.
            noise: noise variance.
            threshold: threshold of the set, below 2.
            best: the incumbent, a number.
            other_mean: the mean that f given a label regresses to instead of `mean`.
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
        """Return the parts for labels inside and outside the set; arguments are those of `__call__`."""
        positive = threshold > 0
        safe = torch.where(positive, threshold, 1.0)
        zeta = torch.where(positive, -ndtri(safe / 2), WIDEST)
        model = CalibratedPosterior(mean, variance, noise, safe, self.alpha)
        sd = variance.sqrt()
        rho, tau = model.signal_share.sqrt(), model.noise_share.sqrt()
        # The mean of f given the label in the middle of the set: the centre of symmetry.
        middle = mean if other_mean is None else model.signal_share * mean + model.noise_share * other_mean

        uniform = InsideLaw(rho, tau, zeta.abs())
        stretch = self._stretch(mean - zeta * sd, mean + zeta * sd)
        within = Part((1 - self.alpha) * stretch, middle, model.sd_of_value(), uniform)

        share = torch.where(positive, self.alpha / safe, 0.0)
        if self.tails == "equation-29":
            return within, Part(share, middle, model.sd_of_value(), OutsideLaw(rho, tau, zeta))
        # The other model's standard deviations of labels, of values given a label, and of values.
        share_of_f = model.signal_share
        labels, given = math.sqrt(2) * variance, math.sqrt(2) * model.sd_given_label().square() / share_of_f
        values = torch.hypot(share_of_f * labels, given)
        coded = OutsideLaw(share_of_f * labels / values, given / values, zeta * sd / labels)
        excess = 2 * model.sd_given_label() * sd / share_of_f
        return within, Part(share * excess, middle, values, coded)

    def _stretch(self, low: Tensor, high: Tensor) -> Tensor:
        """Return the ratio of the density of labels between `low` and `high` to the uniform one."""
        return torch.ones_like(low) if self.inside == "uniform" else (1 / high - low) * (high - low)


CoverageProtocol = Literal["before", "standardised-with-it", "conditioned-on-it"]
"""The set that decides whether a queried observation is covered.

`before`: the set forecast before the observation, as in LOCBO's algorithm 1 and its lemmas. `standardised-with-it`: the
same set in standardised units, but the observation is standardised together with all data, itself included, as in
LOCBO's published script for Ackley's function. `conditioned-on-it`: the set of the process conditioned on the
observation at the same hyperparameters, as in the script for the radio network.
"""


def under_protocol(protocol: CoverageProtocol, process: GP, X: Tensor, y: Tensor) -> tuple[GP, Tensor]:
    """Return the process whose sets decide on coverage, and the observations to compare with them.

    Args:
        protocol: the coverage protocol.
        process: the process that chose the points.
        X: `q x d`.
        y: `q`, NaN where an evaluation failed.

    Returns:
        A process, and `q` numbers in the units of its observations.
    """
    if protocol == "before":
        return process, y
    observed = y.isfinite()
    all_y = torch.cat([process.standardisation.observations(process.y), y[observed]])
    standardisation = process.standardisation.standardising(all_y)
    if protocol == "standardised-with-it":
        return process, process.standardisation.observations(standardisation.outputs(y))
    U = torch.cat([process.U, process.standardisation.inputs(X[observed])])
    return replace(process, U=U, y=standardisation.outputs(all_y), standardisation=standardisation), y


class RefitSchedule:
    """A process whose hyperparameters are refitted every so many rounds; other rounds only add data to it.

    Hyperparameters have their initial values before the first refit. The schedule depends on the history alone, so
    that a resumed trial repeats its fits. The round is the number of the next query.
    """

    def __init__(self, every: int, options: ModelOptions, bounds: Tensor) -> None:
        """Fit in the rounds that `every` divides.

        Args:
            every: number of rounds between fits.
            options: kernel and priors.
            bounds: `2 x d`.
        """
        self.every = every
        self.options = options
        self.bounds = bounds
        self._last: tuple[History, Hyperparameters] | None = None

    def process(self, data: History) -> GP:
        """Return the process conditioned on `data`."""
        since = (len(data) - data.initial + 1) % self.every
        if since == 0:
            return fit_process(data.X, data.Y, self.bounds, self.options)
        standardisation = standardisation_of(self.options.box(self.bounds), data.Y[:, 0])
        return conditioned(data.X, data.Y, self.bounds, self.options.kernel, self._at(data, since), standardisation)

    def _at(self, data: History, since: int) -> Hyperparameters:
        """Return the hyperparameters fitted `since` rounds ago, or the initial ones."""
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
