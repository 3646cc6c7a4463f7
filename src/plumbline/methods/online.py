"""Bayesian optimisation with online conformal prediction: LOCBO, and OCBO with and without localisation."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from plumbline.acquisition.differentiated import Differentiated
from plumbline.acquisition.localised import CalibratedPosterior
from plumbline.acquisition.localised_as_published import DEPARTURES, Departure, PublishedPosterior
from plumbline.acquisition.localised_law import Slopes
from plumbline.calibration.coverage_bounds import CoverageBound
from plumbline.calibration.localised_predictive import LocalisedPredictive
from plumbline.calibration.online import OnlineOptions, OnlineThreshold, clipped_with_pull_back
from plumbline.calibration.predictive import GaussianPredictive
from plumbline.calibration.quantile_predictive import QuantilePredictive
from plumbline.calibration.quantile_recalibration import (
    RecalibratedPredictive,
    ReweightedGaussian,
    levels,
    monotone_with_pull_back,
)
from plumbline.errors import PlumblineError
from plumbline.history import History
from plumbline.methods.base import Domain, Proposal, methods
from plumbline.methods.composed import Choice, ComposedMethod, Round
from plumbline.methods.gp import GPOptions, gaussian_predictor
from plumbline.methods.variants import Variant, departures_of
from plumbline.models.exact_fit import fit_process
from plumbline.models.exact_options import ModelOptions
from plumbline.models.exact_process import ExactProcess
from plumbline.pull_back import with_pull_back
from plumbline.seeding import draw_seed


class OnlineMethodOptions(GPOptions):
    """Options of every method with online conformal prediction.

    Attributes:
        model: maximum likelihood, one lengthscale for all inputs: LOCBO, eq. 38.
        online: of the threshold.
        units: what the lengthscale of the threshold's kernel is measured in: the problem's, or sides of the unit cube.
    """

    model: ModelOptions = ModelOptions(priors="none", ard=False)
    online: OnlineOptions = OnlineOptions()
    units: Literal["problem", "cube"] = "problem"


class LocalisedOptions(OnlineMethodOptions):
    """Options of LOCBO.

    Attributes:
        alpha: target share of observations outside their sets.
        variant: `paper`; `code`, the published code where it departs from the paper; or some of its departures.
    """

    alpha: float = Field(default=0.2, gt=0.0, lt=1.0)
    variant: Variant[Departure] = "paper"

    @property
    def departures(self) -> frozenset[Departure]:
        """What is done as the published code does it."""
        return departures_of(self.variant, DEPARTURES)


class LocalisedBoundOptions(LocalisedOptions):
    """Options of the upper confidence bound under LOCBO's posterior.

    Attributes:
        level: of the quantile of `f`; `1 - alpha / 2` where none is given, as of plain UCB.
        variant: the published code has no such method.
    """

    level: float | None = Field(default=None, gt=0.5, lt=1.0)
    variant: Literal["paper"] = "paper"


class RecalibratedOptions(OnlineMethodOptions):
    """Options of OCBO, whose localised version has `kappa > 0`.

    Attributes:
        levels: how many quantile levels are recalibrated, equally spaced.
    """

    levels: PositiveInt = 19


WithSlopes = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Slopes]]
"""Maps means and standard deviations of f, `b`, and thresholds, `b x M`, in standardised units, to utilities, and to
what returns their derivatives in these."""

Thresholds = Callable[[Tensor], tuple[Tensor, Callable[[Tensor], Tensor]]]
"""Maps `b x d` points to thresholds, `b x M`, and to what pulls gradients in these back to the points."""


class OnlineUtility(Differentiated):
    """A utility of what a process says of f at a point, and of the thresholds there."""

    def __init__(self, process: ExactProcess, thresholds: Thresholds, value: WithSlopes) -> None:
        super().__init__(process.model)
        self.process = process
        self.thresholds = thresholds
        self.value = value

    def values(self, X: Tensor) -> Tensor:
        """Return the utilities of `b x 1 x d` points: `b`."""
        points = X.squeeze(-2)
        seen = self.process.at_points(points)
        return self.value(seen.location, seen.spread, self.thresholds(points)[0])[0]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the utilities of `b x 1 x d` points, `b`, and their derivatives, `b x 1 x d`."""
        points = X.squeeze(-2)
        seen = self.process.at_points(points)
        thresholds, pull_thresholds = self.thresholds(points)
        value, slopes = self.value(seen.location, seen.spread, thresholds)
        to_location, to_spread, to_thresholds = slopes()
        gradient = seen.pull_back_standardised(to_location, to_spread) + pull_thresholds(to_thresholds)
        return value, gradient.unsqueeze(-2)


class OnlineMethod(ComposedMethod[ExactProcess]):
    """The loop with online thresholds; a subclass says what they recalibrate, and which utility is maximised.

    The threshold that an observation is judged by is the one that was in force when its point was asked for. In a
    batch, points are chosen one after another, each as if those before it had come out at their means; their
    observations then update the threshold in the same order, each judged by the set that it was promised.
    """

    takes = "one objective"
    options: OnlineMethodOptions

    def __init__(self, domain: Domain, options: OnlineMethodOptions) -> None:
        super().__init__(domain, options)
        self.threshold = OnlineThreshold.start(self.online, self.targets(), domain.bounds.shape[1])
        self.promised: QuantilePredictive | None = None

    @property
    def online(self) -> OnlineOptions:
        """Options of the threshold."""
        return self.options.online

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
    def value(self, best: Tensor, noise: Tensor) -> WithSlopes:
        """Return the utility.

        Args:
            best: the greatest observation, standardised.
            noise: variance of an observation, likewise.
        """

    def fit(self, data: History) -> ExactProcess:
        """Return the process of what has been observed."""
        return fit_process(data.X, data.Y, self.domain.bounds, self.options.model)

    def utility(self, surrogate: ExactProcess, round: Round) -> OnlineUtility:
        """Return the utility under the thresholds as they are; LOCBO, Algorithm 1."""
        best = surrogate.units.outputs(round.data.Y).max()
        return OnlineUtility(surrogate, self.thresholds_with_pull_back, self.value(best, surrogate.noise))

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
                believed = OnlineUtility(process, self.thresholds_with_pull_back, utility.value)
        return Choice(chosen, utility, surrogate)

    def promise(self, proposal: Proposal) -> None:
        """Remember the sets that are promised."""
        assert proposal.predict is not None
        self.promised = cast(QuantilePredictive, proposal.predict(proposal.X))

    def predictive(self, surrogate: ExactProcess) -> Callable[[Tensor], QuantilePredictive]:
        """Return the model's predictions, calibrated with the thresholds as they are."""
        plain = gaussian_predictor(surrogate)

        def predict(points: Tensor) -> QuantilePredictive:
            with torch.no_grad():
                return self.calibrated(plain(points), points)

        return predict

    def lengthscales(self, surrogate: ExactProcess) -> Tensor:
        """Return the lengthscales of the kernel."""
        return surrogate.lengthscale

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
        for x, events, failed in zip(self.located(X), self.events(promised, y), y.isnan().tolist(), strict=True):
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
        return self.thresholds_with_pull_back(X)[0]

    def thresholds_with_pull_back(self, X: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the same, and what pulls gradients in them back to the points."""
        raw, pull_raw = self.threshold.unclipped_with_pull_back(self.located(X))
        kept, pull_kept = self.kept(raw)

        def pull_back(to_thresholds: Tensor) -> Tensor:
            to_located = pull_raw(pull_kept(to_thresholds))
            return to_located if self.options.units == "problem" else to_located / self.domain.bounds.diff(dim=0)[0]

        return kept, pull_back

    def kept(self, raw: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return thresholds as sets can be made with them, `... x M`, and what pulls gradients back."""
        return clipped_with_pull_back(raw)

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
        self.bound = CoverageBound.of(self.online, options.alpha, self.located(domain.bounds))

    @property
    def online(self) -> OnlineOptions:
        """Options of the threshold."""
        online = self.options.online
        if "kappa-twice" in self.options.departures:
            return online.model_copy(update={"kappa": online.kappa**2})
        return online

    def targets(self) -> Tensor:
        """Return the one level of the sets."""
        return torch.tensor([self.options.alpha], dtype=torch.float64)

    def events(self, forecast: QuantilePredictive, y: Tensor) -> Tensor:
        """Return which observations lie outside their sets."""
        return 1 - forecast.covers(y, self.options.alpha).unsqueeze(-1)

    def calibrated(self, plain: GaussianPredictive, X: Tensor) -> LocalisedPredictive:
        """Return the calibrated likelihood; eq. 28."""
        threshold = self.threshold(self.located(X)).squeeze(-1)
        return LocalisedPredictive(plain.mean, plain.sd, threshold, self.options.alpha)

    def kept(self, raw: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the threshold, which the code's own posterior clips where its clipping is asked for."""
        if "interval-clipping" in self.options.departures:
            return raw, lambda to_kept: to_kept
        return super().kept(raw)

    def notes(self, choice: Choice[ExactProcess], round: Round) -> dict[str, float]:
        """Return the threshold at the points, and what the lemmas promise of the observations up to these."""
        X = choice.X
        raw = self.threshold.unclipped(self.located(X))
        rounds = len(self.threshold.centres) + len(X)
        return {
            "threshold": float(self.threshold(self.located(X)).mean()),
            "clipped_thresholds": float(((raw <= 0) | (raw >= 1)).double().mean()),
            "bound_beta": self.bound.beta,
            "bound_kappa": self.bound.kappa,
            "bound_rho": self.bound.rho,
            "bound_diameter": self.bound.diameter,
            "bound_y": self.bound.of_observations(rounds),
            "bound_f": self.bound.of_function(rounds),
        }


@methods.register("locbo", LocalisedOptions)
class LocalisedImprovementMethod(LocalisedMethod):
    """LOCBO with expected improvement, in closed form and one smooth quadrature."""

    def value(self, best: Tensor, noise: Tensor) -> WithSlopes:
        """Return the expected gain over the best observation; eq. 30."""
        departures = self.options.departures - {"kappa-twice"}
        if departures:
            return automatic(
                lambda mean, sd, thresholds: PublishedPosterior(
                    mean, sd.square() + noise, noise, thresholds.squeeze(-1), self.options.alpha, departures
                ).expected_improvement(best)
            )
        return of_posterior(noise, self.options.alpha, lambda made: made.expected_improvement_with_slopes(best))


@methods.register("locbo-ucb", LocalisedBoundOptions)
class LocalisedBoundMethod(LocalisedMethod):
    """LOCBO with an upper confidence bound, a quantile of its posterior; not in the paper."""

    options: LocalisedBoundOptions

    def value(self, best: Tensor, noise: Tensor) -> WithSlopes:
        """Return the quantile of `f`, whatever the best observation is."""
        level = best.new_tensor(self.options.level or 1 - self.options.alpha / 2)
        return of_posterior(noise, self.options.alpha, lambda made: made.quantile_with_slopes(level))


def of_posterior(
    noise: Tensor, alpha: float, value: Callable[[CalibratedPosterior], tuple[Tensor, Slopes]]
) -> WithSlopes:
    """Return a utility of LOCBO's posterior (eq. 29), with its derivatives, as one of moments and thresholds."""

    def of_moments(mean: Tensor, sd: Tensor, thresholds: Tensor) -> tuple[Tensor, Slopes]:
        made = CalibratedPosterior(mean, sd.square() + noise, noise, thresholds.squeeze(-1), alpha)
        found, of_posterior = value(made)

        def slopes() -> tuple[Tensor, Tensor, Tensor]:
            to_mean, to_sd, to_threshold = of_posterior()
            return to_mean, to_sd, to_threshold.unsqueeze(-1)

        return found, slopes

    return of_moments


def automatic(value: Callable[[Tensor, Tensor, Tensor], Tensor]) -> WithSlopes:
    """Return a utility with derivatives that are taken automatically."""

    def of_moments(mean: Tensor, sd: Tensor, thresholds: Tensor) -> tuple[Tensor, Slopes]:
        found, pull_back = with_pull_back(value, mean, sd, thresholds)

        def slopes() -> tuple[Tensor, Tensor, Tensor]:
            to_mean, to_sd, to_thresholds = pull_back(torch.ones_like(found))
            return to_mean, to_sd, to_thresholds

        return found, slopes

    return of_moments


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

    def kept(self, raw: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the recalibrated levels in order."""
        return monotone_with_pull_back(raw)

    def value(self, best: Tensor, noise: Tensor) -> WithSlopes:
        """Return the expected gain over the best observation: the method takes observations for the function."""

        def gain(mean: Tensor, sd: Tensor, R: Tensor) -> tuple[Tensor, Slopes]:
            scale = (sd.square() + noise).sqrt()
            forecast = ReweightedGaussian(mean, scale, self.threshold.targets, R)
            found, to_mean, to_scale, to_R = forecast.expected_improvement_with_slopes(best)
            return found, lambda: (to_mean, to_scale * sd / scale, to_R)

        return gain
