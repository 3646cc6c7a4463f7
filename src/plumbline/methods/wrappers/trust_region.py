"""Trust-region Bayesian optimisation (TuRBO-1) around any method whose surrogate has lengthscales.

Eriksson, Pearce, Gardner, Turner & Poloczek, Scalable global optimization via local Bayesian optimization (NeurIPS
2019), section 2 and the supplement. Where the text and its authors' code differ, we follow the text: the failure
tolerance is ceil(d / q) (in the code at least 4 / q) and any improvement counts as a success (in the code at least a
thousandth). The wrapped method replaces Thompson sampling.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from torch import Generator, Tensor

from plumbline.core.history import History
from plumbline.core.options import Options
from plumbline.methods.base import Domain, Proposal, methods
from plumbline.methods.baselines import SobolSearch
from plumbline.methods.composed import Choice, Round, Steps, since
from plumbline.methods.wrapper import ComposedWrapper, ComposedWrapperOptions
from plumbline.spaces.base import Space


class TrustRegionOptions(ComposedWrapperOptions):
    """Options of the trust region; defaults of Eriksson et al. (2019). Lengths are of the unit cube.

    Attributes:
        base: the method that searches inside.
        initial_length: base side length of a new region.
        min_length: length below which a new region replaces the region.
        max_length: greatest length.
        success_tolerance: successive successful rounds before the length doubles.
        failure_tolerance: successive unsuccessful rounds before the length halves; None for ceil(d / q).
        least_gain: least improvement of a success, as a share of the best observation's size.
        largest_restart: greatest initial design of a new region. Its size is that of the trial's initial design, which
            may have thousands of points without cost.
        keeps_data: whether a new region starts about the best observation with all data, as in the code of Maus et al.
            (2024), instead of from a new design.
    """

    needs = frozenset({"steps", "lengthscales", "new points"})

    initial_length: PositiveFloat = 0.8
    min_length: PositiveFloat = 0.5**7
    max_length: PositiveFloat = 1.6
    success_tolerance: PositiveInt = 3
    failure_tolerance: PositiveInt | None = None
    least_gain: NonNegativeFloat = 0.0
    largest_restart: PositiveInt = 100
    keeps_data: bool = False

    @model_validator(mode="after")
    def _lengths_are_in_order(self) -> Self:
        if not self.min_length <= self.initial_length <= self.max_length:
            raise ValueError("lengths must obey min_length <= initial_length <= max_length")
        return self


@dataclass(frozen=True)
class Region:
    """The state of a trust region besides the data: plain numbers, so that a checkpoint can hold them.

    Attributes:
        length: base side length, in the unit cube.
        successes: successful rounds in a row.
        failures: unsuccessful rounds in a row.
        best: greatest observation of the region; minus infinity before any.
        start: first row of the history that belongs to the region.
        seen: number of rows of the history so far.
        design: size of a region's initial design; None before the first round.
    """

    length: float
    successes: int = 0
    failures: int = 0
    best: float = -math.inf
    start: int = 0
    seen: int = 0
    design: int | None = None

    @property
    def begun(self) -> bool:
        """Whether the region's initial design has been observed."""
        return self.design is not None and self.seen - self.start >= self.design


def observe(region: Region, history: History, largest_restart: int) -> Region:
    """Return the region updated by the history before a request.

    Args:
        region: the region after the last round.
        history: the history of the trial.
        largest_restart: greatest initial design of a new region.
    """
    Y = history.Y[region.start :, 0].nan_to_num(nan=-torch.inf)  # a failed evaluation is no success
    return replace(
        region,
        best=Y.max().item() if len(Y) else -math.inf,
        seen=len(history),
        design=min(len(history), largest_restart) if region.design is None else region.design,
    )


def advance(region: Region, Y: Tensor, dim: int, options: TrustRegionOptions) -> Region:
    """Return the region after one more round; Eriksson et al. (2019), section 2.

    A round succeeds if any of its points is better than the best observation of the region. Rounds of a region's
    initial design do not count. A region that has become too small is replaced by one without data.

    Args:
        region: the region at the request of the round.
        Y: `q` observations of the round.
        dim: dimension d of the domain.
        options: lengths and tolerances.
    """
    updated = replace(region, best=max(region.best, Y.max().item()), seen=region.seen + len(Y))
    if not region.begun:
        return updated
    least = options.least_gain * abs(region.best) if math.isfinite(region.best) else 0.0
    better = updated.best > region.best + least
    successes = region.successes + 1 if better else 0
    failures = 0 if better else region.failures + 1
    length = region.length
    if successes >= options.success_tolerance:
        length, successes = min(2 * length, options.max_length), 0
    elif failures >= (options.failure_tolerance or math.ceil(dim / len(Y))):
        length, failures = length / 2, 0
    if length < options.min_length and options.keeps_data:
        return replace(updated, length=options.initial_length, successes=0, failures=0)
    if length < options.min_length:
        return Region(options.initial_length, start=updated.seen, seen=updated.seen, design=region.design)
    return replace(updated, length=length, successes=successes, failures=failures)


def region_box(centre: Tensor, lengthscales: Tensor, length: float, bounds: Tensor) -> Tensor:
    """Return the trust region, `2 x d`, cut to the domain; Eriksson et al. (2019), section 2.

    In the unit cube the sides are `length * l_i / (l_1 ... l_d)^(1/d)`: their product is `length^d`.

    Args:
        centre: `d`, in the problem's bounds.
        lengthscales: `d`, or one for all inputs, of the unit cube.
        length: base side length, of the unit cube.
        bounds: `2 x d`.
    """
    weights = lengthscales / lengthscales.log().mean().exp()
    half = length * weights / 2 * (bounds[1] - bounds[0])
    return torch.stack([torch.maximum(centre - half, bounds[0]), torch.minimum(centre + half, bounds[1])])


@methods.register("trust-region", TrustRegionOptions)
class TrustRegionMethod(ComposedWrapper):
    """Any method within a trust region that grows with success and shrinks with failure (TuRBO-1).

    The region's centre is the best observation since the region began, and the surrogate is fitted to the data since
    then. Quantities that depend on the number of all observations, such as the level of a confidence bound, still do. A
    restarted region begins with points of a Sobol sequence, as many as the initial design has (100 at most), in rounds
    of q without a model. In a table the search covers the rows in the region, or all remaining rows where the region
    holds fewer than q.
    """

    options: TrustRegionOptions

    def __init__(self, domain: Domain, options: TrustRegionOptions) -> None:
        super().__init__(domain, options)
        self.region = Region(options.initial_length)
        self.restarts = SobolSearch(domain, Options())

    @property
    def steps(self) -> Steps[Any]:
        """The base's steps, with the data and the space of the region."""
        return replace(
            self.base.steps,
            model_free_start=self.model_free_start,
            training_rows=self.training_rows,
            search_region=self.search_region,
            notes=self.notes,
        )

    def model_free_start(self, history: History, q: int, generator: Generator) -> Proposal | None:
        """Return further points of a new region's initial design until it is complete."""
        self.region = observe(self.region, history, self.options.largest_restart)
        if self.region.begun:
            return self.base.steps.model_free_start(history, q, generator)
        return replace(self.restarts.ask(history, q, generator), notes={"region_length": self.region.length})

    def training_rows(self, history: History) -> History:
        """Return the rows of the region's data that the base's surrogate is fitted to."""
        return self.base.steps.training_rows(since(history, self.region.start))

    def search_region(self, surrogate: Any, round: Round) -> Space:
        """Return the region about its best observation."""
        base = self.base.steps
        centre = round.data.X[round.data.Y[:, 0].argmax()]
        box = region_box(centre, base.lengthscales(surrogate), self.region.length, self.domain.bounds)
        return base.search_region(surrogate, round).within(box, round.history, round.q)

    def notes(self, choice: Choice[Any], round: Round) -> dict[str, float]:
        """Return the base's notes and the region's length."""
        return {**self.base.steps.notes(choice, round), "region_length": self.region.length}

    def tell(self, X: Tensor, Y: Tensor) -> None:
        """Count a success or a failure. Observations before the first `ask` belong to the initial design."""
        super().tell(X, Y)
        if self.region.design is not None:
            self.region = advance(self.region, Y[:, 0].nan_to_num(nan=-torch.inf), X.shape[-1], self.options)

    def state_dict(self) -> dict[str, Any]:
        """Return the region, the seed of the restarts' points and the base's state."""
        return {**super().state_dict(), "region": asdict(self.region), "restarts": self.restarts.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the region."""
        super().load_state_dict(state)
        if state:
            self.region = Region(**state["region"])
            self.restarts.load_state_dict(state["restarts"])
