"""The common base of LOCBO and OCBO: thresholds updated online, and acquisition functions that depend on them."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import torch
from pydantic import PositiveInt
from torch import Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.seeding import draw_seed
from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.base import Domain, Proposal
from plumbline.methods.composed import Choice, Round, SurrogateMethod
from plumbline.methods.gp.single_outcome import GPOptions, gaussian_predictor
from plumbline.methods.localised.as_published import CoverageProtocol, RefitSchedule, under_protocol
from plumbline.methods.localised.forecasts import QuantilePredictive
from plumbline.methods.localised.law import Slopes
from plumbline.methods.localised.thresholds import OnlineOptions, OnlineThreshold, clipped_with_vjp
from plumbline.methods.localised.variants import ONLINE_CODE, ONLINE_DEPARTURES, OnlineDeparture
from plumbline.methods.variants import Json, Variant, VariantOptions
from plumbline.models.gp.fit import ModelOptions
from plumbline.models.gp.process import GP
from plumbline.spaces.with_gradient import Differentiated


class OnlineMethodOptions(GPOptions, VariantOptions):
    """Options of every method with online conformal prediction.

    Attributes:
        model: maximum likelihood, one lengthscale for all inputs: LOCBO, eq. 38.
        online: options of the threshold.
        units: units of the lengthscale of the threshold's kernel: the problem's, or sides of the unit cube.
        coverage_protocol: the forecast that decides whether an observation is covered.
        refit_every: the refit schedule: hyperparameters are fitted in rounds that this divides, and have their initial
            values before; other rounds only add data.
        variant: `paper`; `code`, the published script for Ackley's function; or a list of departures.
    """

    departures: ClassVar[Mapping[str, Json]] = ONLINE_DEPARTURES
    code: ClassVar[tuple[str, ...]] = ONLINE_CODE

    model: ModelOptions = ModelOptions(priors="none", ard=False)
    online: OnlineOptions = OnlineOptions()
    units: Literal["problem", "cube"] = "problem"
    coverage_protocol: CoverageProtocol = "before"
    refit_every: PositiveInt = 1
    variant: Variant[OnlineDeparture] = "paper"


WithSlopes = Callable[..., tuple[Tensor, Slopes]]
"""Maps means and standard deviations of f, `b`, and thresholds, `b x M`, in standardised units, to values and their
derivatives. Another process's means, `b`, may be a further argument."""

Thresholds = Callable[[Tensor], tuple[Tensor, Callable[[Tensor], Tensor]]]
"""Maps `b x d` points to thresholds, `b x M`, and their vector-Jacobian product."""


class OnlineAcquisition(Differentiated):
    """An acquisition function of a process's marginal posterior at a point and of the thresholds there.

    Args:
        process: in any units.
        thresholds: the current thresholds.
        value: maps moments and thresholds to values.
        other: a process of the same data, whose mean is a further argument of `value`.
    """

    def __init__(self, process: GP, thresholds: Thresholds, value: WithSlopes, other: GP | None = None) -> None:
        super().__init__(process.model)
        self.process = process
        self.thresholds = thresholds
        self.value = value
        self.other = other

    def values(self, X: Tensor) -> Tensor:
        """Return the values of `b x 1 x d` points: `b`."""
        points = X.squeeze(-2)
        posterior = self.process.marginal_posterior(points)
        more = [] if self.other is None else [self.other.marginal_posterior(points).location]
        return self.value(posterior.location, posterior.spread, self.thresholds(points)[0], *more)[0]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of `b x 1 x d` points, `b`, and their derivatives, `b x 1 x d`."""
        points = X.squeeze(-2)
        posterior = self.process.marginal_posterior(points)
        others = [] if self.other is None else [self.other.marginal_posterior(points)]
        thresholds, vjp_thresholds = self.thresholds(points)
        means = (other.location for other in others)
        value, slopes = self.value(posterior.location, posterior.spread, thresholds, *means)
        grad_location, grad_spread, grad_thresholds, *grad_more = slopes()
        gradient = posterior.vjp_standardised(grad_location, grad_spread) + vjp_thresholds(grad_thresholds)
        for other, grad_other in zip(others, grad_more, strict=True):
            gradient = gradient + other.vjp_standardised(grad_other, torch.zeros_like(grad_other))
        return value, gradient.unsqueeze(-2)


@dataclass(frozen=True)
class CalibratedPredictor:
    """Calibrated forecasts of a process.

    Attributes:
        process: the process behind the forecasts.
        calibrated: maps its forecasts at points (`n x d`) to calibrated ones.
    """

    process: GP
    calibrated: Callable[[GaussianPredictive, Tensor], QuantilePredictive]

    def __call__(self, points: Tensor) -> QuantilePredictive:
        """Return the forecast of observations at `n x d` points."""
        with torch.no_grad():
            return self.calibrated(gaussian_predictor(self.process)(points), points)


class OnlineMethod(SurrogateMethod[GP]):
    """The loop with online thresholds; a subclass gives their events and the acquisition function.

    Coverage is decided by the threshold in force when the point was queried. The points of a batch are chosen
    sequentially, each under a process that has the means at those before it as data (kriging believer). Their
    observations update the threshold in the same order, each by its registered set or as the coverage protocol says.
    """

    takes = "one objective"
    provides = SurrogateMethod.provides | {"gp", "one gp", "lengthscales", "kernel"}
    options: OnlineMethodOptions

    def __init__(self, domain: Domain, options: OnlineMethodOptions) -> None:
        super().__init__(domain, options)
        self.threshold = OnlineThreshold.start(options.online, self.targets(), domain.bounds.shape[1])
        self.refit_schedule = RefitSchedule(options.refit_every, options.model, domain.bounds)
        self.registered: CalibratedPredictor | None = None

    @abstractmethod
    def targets(self) -> Tensor:
        """Return the initial values and target frequencies of the thresholds: `M`."""

    @abstractmethod
    def events(self, forecast: QuantilePredictive, y: Tensor) -> Tensor:
        """Return 1 where the event of a threshold happened at an observation of `y` (`q`), else 0: `q x M`."""

    @abstractmethod
    def calibrated(self, plain: GaussianPredictive, X: Tensor) -> QuantilePredictive:
        """Return the calibrated forecast of observations at `X` (`n x d`)."""

    @abstractmethod
    def value(self, best: Tensor, noise: Tensor, round: Round) -> WithSlopes:
        """Return the acquisition value as a function of moments and thresholds.

        Args:
            best: the observation to improve on, standardised.
            noise: noise variance of an observation, standardised.
            round: the request.
        """

    def fit(self, data: History) -> GP:
        """Return the process conditioned on `data`."""
        return self.refit_schedule.process(data)

    def incumbent(self, surrogate: GP, round: Round) -> Tensor:
        """Return the observation to improve on, standardised."""
        return surrogate.standardisation.outputs(round.data.Y).max()

    def utility(self, surrogate: GP, round: Round) -> OnlineAcquisition:
        """Return the acquisition function under the current thresholds; LOCBO, Algorithm 1."""
        return self.acquisition(surrogate, self.value(self.incumbent(surrogate, round), surrogate.noise, round))

    def acquisition(self, process: GP, value: WithSlopes) -> OnlineAcquisition:
        """Return the acquisition function under a process and the current thresholds."""
        return OnlineAcquisition(process, self.thresholds_with_vjp, value)

    def search(self, utility: OnlineAcquisition, surrogate: GP, round: Round) -> Choice[GP]:
        """Return points chosen sequentially, each under a process that has the means at those before it as data."""
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
                believed = self.acquisition(process, utility.value)
        return Choice(chosen, utility, surrogate)

    def register_forecast(self, proposal: Proposal) -> None:
        """Register the sets of the proposal."""
        self.registered = cast(CalibratedPredictor, proposal.predict)

    def predictive(self, surrogate: GP) -> CalibratedPredictor:
        """Return the model's predictions, calibrated with the current thresholds."""
        return CalibratedPredictor(surrogate, self.calibrated)

    def lengthscales(self, surrogate: GP) -> Tensor:
        """Return the lengthscales of the kernel."""
        return surrogate.lengthscale_in(self.domain.bounds)

    def tell(self, X: Tensor, Y: Tensor) -> None:
        """Update the thresholds. Observations without a registered forecast belong to the initial design.

        Raises:
            PlumblineError: an observation is infinite, so that its coverage is undefined.
        """
        registered, self.registered = self.registered, None
        if registered is None:
            return
        y = Y.squeeze(-1)
        if bool(torch.isinf(y).any()):
            raise PlumblineError(
                f"the coverage of observations {y.tolist()} is undefined: they must be finite, or NaN if they failed"
            )
        process, compared = under_protocol(self.options.coverage_protocol, registered.process, X, y)
        events = self.events(self.predictive(process)(X), compared)
        for x, event, failed in zip(self.located(X), events, y.isnan().tolist(), strict=True):
            if not failed:
                self.threshold = self.threshold.update(x, event)

    def located(self, X: Tensor) -> Tensor:
        """Map points (`... x d`) to the units of the threshold's kernel."""
        if self.options.units == "problem":
            return X
        low, high = self.domain.bounds
        return (X - low) / (high - low)

    def thresholds_at(self, X: Tensor) -> Tensor:
        """Return the admissible thresholds at `... x d`: `... x M`."""
        return self.thresholds_with_vjp(X)[0]

    def thresholds_with_vjp(self, X: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the admissible thresholds and their vector-Jacobian product in the points."""
        raw, vjp_raw = self.threshold.unclipped_with_vjp(self.located(X))
        admissible, vjp_admissible = self.admissible(raw)

        def vjp(grad_thresholds: Tensor) -> Tensor:
            grad_located = vjp_raw(vjp_admissible(grad_thresholds))
            return grad_located if self.options.units == "problem" else grad_located / self.domain.bounds.diff(dim=0)[0]

        return admissible, vjp

    def admissible(self, raw: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return thresholds that define a set, `... x M`, and their vector-Jacobian product."""
        return clipped_with_vjp(raw)

    def state_dict(self) -> dict[str, Any]:
        """Return the thresholds."""
        return self.threshold.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the thresholds."""
        if state:
            self.threshold = self.threshold.restored(state)


def believing(process: GP, x: Tensor) -> GP:
    """Return the process conditioned on its own mean at `x` (`1 x d`) as an observation (kriging believer).

    Ginsbourger, Le Riche & Carraro, Kriging is well-suited to parallelize optimization (2010).
    """
    expected, _ = process.posterior_moments(x, joint=False)
    return process.condition_on_observations(x, expected.unsqueeze(-1))
