"""The common base of LOCBO and OCBO: thresholds updated online, and acquisition functions that depend on them."""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import torch
from pydantic import PositiveInt
from torch import Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.numbers import Array
from plumbline.core.seeding import draw_seed
from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.base import Domain, Proposal
from plumbline.methods.composed import Choice, Round, Steps, SurrogateMethod
from plumbline.methods.gp.in_lockstep import fits, searches
from plumbline.methods.gp.single_outcome import GPOptions, gaussian_predictor
from plumbline.methods.localised.as_published import CoverageProtocol, RefitSchedule, under_protocol
from plumbline.methods.localised.forecasts import QuantilePredictive
from plumbline.methods.localised.law import Slopes
from plumbline.methods.localised.thresholds import (
    OnlineOptions,
    OnlineThreshold,
    ThresholdArrays,
    WithVjp,
    clipped_with_vjp,
    thresholds_together,
)
from plumbline.methods.localised.variants import ONLINE_CODE, ONLINE_DEPARTURES, OnlineDeparture
from plumbline.methods.lockstep import JointStep, LockstepMethod
from plumbline.methods.variants import Json, Variant, VariantOptions
from plumbline.models.gp.fit import ModelOptions, fit_each
from plumbline.models.gp.marginal import Arrays, together
from plumbline.models.gp.process import GP
from plumbline.spaces.abreast import Abreast
from plumbline.spaces.box import Box, Climbs
from plumbline.spaces.search import MultiStart
from plumbline.spaces.with_gradient import ClimbEvaluation, Differentiated


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


Form = Callable[..., tuple[Array, Slopes[Array]]]
"""Maps means and standard deviations of f, `m x b`, and thresholds, `m x b x M`, in standardised units, to values and
their derivatives. Means under other GPs, `m x b`, may be a further argument."""


class OfParameters:
    """A form with parameters, such as incumbent and noise variance.

    Attributes:
        function: maps the arguments of a `Form` and the parameters to what it returns; equal for functions that can be
            evaluated together.
        parameters: `m x 1` each.
    """

    def __init__(self, function: Callable[..., tuple[Array, Slopes[Array]]], *parameters: Array | float) -> None:
        self.function = function
        self.parameters = tuple(np.reshape(one, (-1, 1)) for one in parameters)

    def __call__(self, *moments: Array) -> tuple[Array, Slopes[Array]]:
        """Return the values and their derivatives."""
        return self.function(*moments, *self.parameters)

    def only(self, rows: Sequence[int]) -> "OfParameters":
        """Return the form of the functions with numbers `rows`."""
        return OfParameters(self.function, *(one[rows] for one in self.parameters))


@dataclass(frozen=True)
class OnlineFunctions:
    """m acquisition functions of marginal posteriors and thresholds.

    Attributes:
        form: maps moments and thresholds to values.
        processes: the GPs, in any units.
        thresholds: the current thresholds.
        admissible: makes thresholds define a set.
        others: GPs of the same data, whose means are a further argument of `form`; None for no such argument.
    """

    form: Form
    processes: Arrays
    thresholds: ThresholdArrays
    admissible: Callable[[Array], WithVjp]
    others: Arrays | None = None

    @classmethod
    def of(cls, parts: Sequence["OnlineFunctions"]) -> "OnlineFunctions":
        """Return functions of one kind together."""
        forms = [cast(OfParameters, part.form) for part in parts]
        parameters = map(np.concatenate, zip(*(form.parameters for form in forms), strict=True))
        return cls(
            OfParameters(forms[0].function, *parameters),
            together([part.processes for part in parts]),
            thresholds_together([part.thresholds for part in parts]),
            parts[0].admissible,
            None if parts[0].others is None else together([cast(Arrays, part.others) for part in parts]),
        )

    def only(self, rows: Sequence[int]) -> Self:
        """Return the functions with numbers `rows`."""
        return replace(
            self,
            form=cast(OfParameters, self.form).only(rows),
            processes=self.processes.only(rows),
            thresholds=self.thresholds.only(rows),
            others=None if self.others is None else self.others.only(rows),
        )

    def values(self, X: Array) -> Array:
        """Return the values at `m x b x d` points: `m x b`."""
        posterior = self.processes.marginal_posterior(X)
        thresholds, _ = self.admissible(self.thresholds.unclipped_with_vjp(X)[0])
        more = [] if self.others is None else [self.others.marginal_posterior(X).location]
        return self.form(posterior.location, posterior.spread, thresholds, *more)[0]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the values at `m x b x d` points, `m x b`, and the derivatives, `m x b x d`."""
        posterior = self.processes.marginal_posterior(X)
        raw, vjp_raw = self.thresholds.unclipped_with_vjp(X)
        thresholds, vjp_admissible = self.admissible(raw)
        others = [] if self.others is None else [self.others.marginal_posterior(X)]
        means = (other.location for other in others)
        value, slopes = self.form(posterior.location, posterior.spread, thresholds, *means)
        grad_location, grad_spread, grad_thresholds, *grad_more = slopes()
        gradient = posterior.vjp_standardised(grad_location, grad_spread) + vjp_raw(vjp_admissible(grad_thresholds))
        for other, grad_other in zip(others, grad_more, strict=True):
            gradient = gradient + other.vjp_standardised(grad_other, np.zeros_like(grad_other))
        return value, gradient


class OnlineAcquisition(Differentiated):
    """An acquisition function of a process's marginal posterior at a point and of the thresholds there.

    Args:
        process: in any units.
        thresholds: the current thresholds.
        admissible: makes thresholds define a set.
        form: maps moments and thresholds to values.
        other: a process of the same data, whose mean is a further argument of `form`.
    """

    def __init__(
        self,
        process: GP,
        thresholds: ThresholdArrays,
        admissible: Callable[[Array], WithVjp],
        form: Form,
        other: GP | None = None,
    ) -> None:
        super().__init__(process.model)
        self.form = form
        self.other = other
        self.functions = OnlineFunctions(
            form, process.arrays, thresholds, admissible, None if other is None else other.arrays
        )

    def values(self, X: Tensor) -> Tensor:
        """Return the values of `b x 1 x d` points: `b`."""
        return torch.from_numpy(self.functions.values(X.squeeze(-2).numpy()[None])[0])

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of `b x 1 x d` points, `b`, and their derivatives, `b x 1 x d`."""
        value, gradient = self.functions.value_and_gradient(X.squeeze(-2).numpy()[None])
        return torch.from_numpy(value[0]), torch.from_numpy(gradient[0]).unsqueeze(-2)

    @property
    def kind(self) -> Hashable:
        """The function, and the kernel and the numbers of the data, of lengthscales and of thresholds."""
        if not isinstance(self.form, OfParameters):
            return None
        of = self.functions
        shapes = of.processes.points.shape, of.processes.lengthscale.shape, of.thresholds.coefficients.shape
        return self.form.function, of.processes.kernel, of.admissible, of.others is None, shapes

    @classmethod
    def evaluation(cls, acquisitions: Sequence[Self], climbs: int) -> ClimbEvaluation:
        """Return the evaluation of acquisition functions of one kind, or of a single one."""
        if acquisitions[0].kind is None:
            return super().evaluation(acquisitions, climbs)
        functions = OnlineFunctions.of([one.functions for one in acquisitions])
        return Abreast(functions, len(acquisitions), climbs, functions.processes.points.shape[-1])


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


class OnlineMethod(LockstepMethod, SurrogateMethod[GP]):
    """The loop with online thresholds; a subclass gives their events and the acquisition function.

    Coverage is decided by the threshold in force when the point was queried. The points of a batch are chosen
    sequentially, each under a process that has the means at those before it as data (kriging believer). Their
    observations update the threshold in the same order, each by its registered set or as the coverage protocol says.
    """

    takes = "one objective"
    provides = SurrogateMethod.provides | {"gp", "one gp", "one posterior", "lengthscales", "kernel", "lockstep"}
    options: OnlineMethodOptions

    def __init__(self, domain: Domain, options: OnlineMethodOptions) -> None:
        super().__init__(domain, options)
        self.threshold = OnlineThreshold.start(options.online, self.targets(), domain.bounds.shape[1])
        self.refit_schedule = RefitSchedule(options.refit_every, options.model, domain.bounds)
        self.registered: CalibratedPredictor | None = None

    @property
    def steps(self) -> Steps[GP]:
        """The steps; seeds in lockstep fit their GPs and climb their acquisition functions together."""
        steps = super().steps
        return replace(
            steps,
            fit_round=JointStep(self, fits, steps.fit_round),
            search=JointStep(self, searches, steps.search),
        )

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
    def value(self, best: Tensor, noise: Tensor, round: Round) -> Form:
        """Return the acquisition value as a function of moments and thresholds.

        Args:
            best: the observation to improve on, standardised.
            noise: noise variance of an observation, standardised.
            round: the request.
        """

    def fit(self, data: History) -> GP:
        """Return the process conditioned on `data`."""
        return self.refit_schedule.process(data)

    def fit_each(self, X: Tensor, Y: Tensor, near: GP | None = None, without_warning: bool = False) -> list[GP | None]:
        """Return `fit` of each of m data sets, `m x n x d` and `m x n x 1`, as `GPMethod.fit_each` does."""
        if self.options.refit_every > 1:
            return [None] * len(X)
        return fit_each(X, Y, self.domain.bounds, self.options.model, None, near, without_warning)

    def incumbent(self, surrogate: GP, round: Round) -> Tensor:
        """Return the observation to improve on, standardised."""
        return surrogate.standardisation.outputs(round.data.Y).max()

    def utility(self, surrogate: GP, round: Round) -> OnlineAcquisition:
        """Return the acquisition function under the current thresholds; LOCBO, Algorithm 1."""
        return self.acquisition(surrogate, self.value(self.incumbent(surrogate, round), surrogate.noise, round))

    def acquisition(self, process: GP, form: Form) -> OnlineAcquisition:
        """Return the acquisition function under a process and the current thresholds."""
        return OnlineAcquisition(process, self.threshold_arrays, self.admissible, form)

    def search(self, utility: OnlineAcquisition, surrogate: GP, round: Round) -> Choice[GP]:
        """Return points chosen sequentially, each under a process that has the means at those before it as data."""
        space = round.space.settle(round.history, round.generator)
        chosen, ends = round.data.X.new_empty(0, space.dim), None
        process, believed = surrogate, utility
        for _ in range(int(min(round.q, space.size))):
            ends = space.ends(believed, MultiStart(1, self.options.search, draw_seed(round.generator)))
            space = space.without(ends[0])
            chosen = torch.cat([chosen, ends[0]])
            if len(chosen) < round.q:
                process = process.kriging_believer(ends[0])
                believed = self.acquisition(process, utility.form)
        return Choice(chosen, utility, surrogate, ends=ends if round.q == 1 else None)

    def start_search(self, utility: OnlineAcquisition, surrogate: GP, round: Round) -> Climbs | None:
        """Return the climbs that `search` begins with for one point of a box; None elsewhere."""
        if round.q > 1 or type(round.space) is not Box:
            return None
        return round.space.climbs(utility, MultiStart(1, self.options.search, draw_seed(round.generator)))

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
        return torch.from_numpy(self.admissible(self.threshold.unclipped(self.located(X)).numpy())[0])

    @property
    def threshold_arrays(self) -> ThresholdArrays:
        """The thresholds as arrays, in the problem's units."""
        if self.options.units == "problem":
            return self.threshold.arrays
        low, high = self.domain.bounds.numpy()[:, None, None]
        return replace(self.threshold.arrays, low=low, width=high - low)

    @property
    def admissible(self) -> Callable[[Array], WithVjp]:
        """A function that makes thresholds, `... x M`, define a set."""
        return clipped_with_vjp

    def state_dict(self) -> dict[str, Any]:
        """Return the thresholds."""
        return self.threshold.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the thresholds."""
        if state:
            self.threshold = self.threshold.restored(state)
