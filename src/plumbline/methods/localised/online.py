"""What LOCBO and OCBO share: thresholds that learn from misses, and a utility of a posterior with thresholds."""

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
from plumbline.methods.localised.as_published import Judging, RefitSchedule, judged
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
        online: of the threshold.
        units: what the lengthscale of the threshold's kernel is measured in: the problem's, or sides of the unit cube.
        judging: by which forecast an observation is found to be covered or missed.
        refit_every: hyperparameters are fitted in rounds that this divides, and are at their initial values before; in
            other rounds data are added alone.
        variant: `paper`; `code`, the published script for Ackley's function; or a list of departures.
    """

    departures: ClassVar[Mapping[str, Json]] = ONLINE_DEPARTURES
    code: ClassVar[tuple[str, ...]] = ONLINE_CODE

    model: ModelOptions = ModelOptions(priors="none", ard=False)
    online: OnlineOptions = OnlineOptions()
    units: Literal["problem", "cube"] = "problem"
    judging: Judging = "before"
    refit_every: PositiveInt = 1
    variant: Variant[OnlineDeparture] = "paper"


WithSlopes = Callable[..., tuple[Tensor, Slopes]]
"""Maps means and standard deviations of f, `b`, and thresholds, `b x M`, in standardised units, to utilities, and to
what returns their derivatives in these. A utility may want another process's means too, `b`."""

Thresholds = Callable[[Tensor], tuple[Tensor, Callable[[Tensor], Tensor]]]
"""Maps `b x d` points to thresholds, `b x M`, and to what pulls gradients in these back to the points."""


class OnlineAcquisition(Differentiated):
    """A utility of what a process says of f at a point, and of the thresholds there.

    Args:
        process: in any units.
        thresholds: that are in force.
        value: the utility.
        other: a process of the same data, whose mean `value` wants too.
    """

    def __init__(self, process: GP, thresholds: Thresholds, value: WithSlopes, other: GP | None = None) -> None:
        super().__init__(process.model)
        self.process = process
        self.thresholds = thresholds
        self.value = value
        self.other = other

    def values(self, X: Tensor) -> Tensor:
        """Return the utilities of `b x 1 x d` points: `b`."""
        points = X.squeeze(-2)
        seen = self.process.marginal_posterior(points)
        more = [] if self.other is None else [self.other.marginal_posterior(points).location]
        return self.value(seen.location, seen.spread, self.thresholds(points)[0], *more)[0]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the utilities of `b x 1 x d` points, `b`, and their derivatives, `b x 1 x d`."""
        points = X.squeeze(-2)
        seen = self.process.marginal_posterior(points)
        others = [] if self.other is None else [self.other.marginal_posterior(points)]
        thresholds, vjp_thresholds = self.thresholds(points)
        value, slopes = self.value(seen.location, seen.spread, thresholds, *(other.location for other in others))
        grad_location, grad_spread, grad_thresholds, *grad_more = slopes()
        gradient = seen.vjp_standardised(grad_location, grad_spread) + vjp_thresholds(grad_thresholds)
        for other, grad_other in zip(others, grad_more, strict=True):
            gradient = gradient + other.vjp_standardised(grad_other, torch.zeros_like(grad_other))
        return value, gradient.unsqueeze(-2)


@dataclass(frozen=True)
class CalibratedPredictor:
    """Forecasts of a process, calibrated.

    Attributes:
        process: whose forecasts they are.
        calibrated: maps its forecasts at points (`n x d`) to calibrated ones.
    """

    process: GP
    calibrated: Callable[[GaussianPredictive, Tensor], QuantilePredictive]

    def __call__(self, points: Tensor) -> QuantilePredictive:
        """Return the forecast of observations at `n x d` points."""
        with torch.no_grad():
            return self.calibrated(gaussian_predictor(self.process)(points), points)


class OnlineMethod(SurrogateMethod[GP]):
    """The loop with online thresholds; a subclass says what they recalibrate, and which utility is maximised.

    The threshold that an observation is judged by is the one that was in force when its point was asked for. In a
    batch, points are chosen one after another, each as if those before it had come out at their means; their
    observations then update the threshold in the same order, each judged by the set that it was promised (or by
    another one that `judging` asks for).
    """

    takes = "one objective"
    provides = SurrogateMethod.provides | {"gp", "one gp", "lengthscales", "kernel"}
    options: OnlineMethodOptions

    def __init__(self, domain: Domain, options: OnlineMethodOptions) -> None:
        super().__init__(domain, options)
        self.threshold = OnlineThreshold.start(options.online, self.targets(), domain.bounds.shape[1])
        self.refits = RefitSchedule(options.refit_every, options.model, domain.bounds)
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
    def value(self, best: Tensor, noise: Tensor, round: Round) -> WithSlopes:
        """Return the utility.

        Args:
            best: the observation to improve on, standardised.
            noise: variance of an observation, likewise.
            round: what is asked.
        """

    def fit(self, data: History) -> GP:
        """Return the process of what has been observed."""
        return self.refits.process(data)

    def incumbent(self, surrogate: GP, round: Round) -> Tensor:
        """Return the observation to improve on, standardised."""
        return surrogate.standardisation.outputs(round.data.Y).max()

    def utility(self, surrogate: GP, round: Round) -> OnlineAcquisition:
        """Return the utility under the thresholds as they are; LOCBO, Algorithm 1."""
        return self.utility_of(surrogate, self.value(self.incumbent(surrogate, round), surrogate.noise, round))

    def utility_of(self, process: GP, value: WithSlopes) -> OnlineAcquisition:
        """Return a utility under a process and the thresholds as they are."""
        return OnlineAcquisition(process, self.thresholds_with_vjp, value)

    def search(self, utility: OnlineAcquisition, surrogate: GP, round: Round) -> Choice[GP]:
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

    def register_forecast(self, proposal: Proposal) -> None:
        """Remember the sets that are promised."""
        self.promised = cast(CalibratedPredictor, proposal.predict)

    def predictive(self, surrogate: GP) -> CalibratedPredictor:
        """Return the model's predictions, calibrated with the thresholds as they are."""
        return CalibratedPredictor(surrogate, self.calibrated)

    def lengthscales(self, surrogate: GP) -> Tensor:
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
        return self.thresholds_with_vjp(X)[0]

    def thresholds_with_vjp(self, X: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the same, and what pulls gradients in them back to the points."""
        raw, vjp_raw = self.threshold.unclipped_with_vjp(self.located(X))
        kept, vjp_kept = self.kept(raw)

        def vjp(grad_thresholds: Tensor) -> Tensor:
            grad_located = vjp_raw(vjp_kept(grad_thresholds))
            return grad_located if self.options.units == "problem" else grad_located / self.domain.bounds.diff(dim=0)[0]

        return kept, vjp

    def kept(self, raw: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return thresholds as sets can be made with them, `... x M`, and what pulls gradients back."""
        return clipped_with_vjp(raw)

    def state_dict(self) -> dict[str, Any]:
        """Return the thresholds."""
        return self.threshold.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with the same thresholds."""
        if state:
            self.threshold = self.threshold.restored(state)


def believing(process: GP, x: Tensor) -> GP:
    """Return the process as if `x` (`1 x d`) had been observed to be what it expects (kriging believer).

    Ginsbourger, Le Riche & Carraro, Kriging is well-suited to parallelize optimization (2010).
    """
    expected, _ = process.posterior_moments(x, joint=False)
    return process.condition_on_observations(x, expected.unsqueeze(-1))
