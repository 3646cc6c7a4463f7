"""Options of methods with an SVGP, and departures from AABO's text."""

from collections.abc import Mapping
from typing import Literal, Self, get_args

from pydantic import PositiveInt, model_validator

from plumbline.core.options import Options
from plumbline.methods.sparse.reading import Reading
from plumbline.methods.variants import Variant, departures_of
from plumbline.models.algebra import SparseKernel
from plumbline.models.svgp.inducing import Baseline
from plumbline.models.svgp.minibatches import TrainingOptions
from plumbline.models.svgp.objective import Objective
from plumbline.spaces.search import SearchOptions

CodeDeparture = Literal[
    "raw-inputs",
    "units-of-the-design",
    "last-hundred",
    "failures-in-total",
    "minibatches-alike",
    "improvement-of-observations",
    "sampled-improvement",
    "frozen-inducing",
    "utility-per-datum",
    "short-warm-start",
    "turns-by-epoch",
    "region-of-the-last-hundred",
    "improvement-before-gradient",
    "sampled-maximisers",
    "fixed-maximisers",
    "frozen-factors",
    "eight-attempts",
    "appended-update",
    "uncentred-update",
    "doubled-noise",
]
"""Departures of AABO's published code from its text; docs/methods/text-against-code.md describes each."""

OtherDeparture = Literal["noisy-update", "shrunk-twice-update"]
"""Departures that are not in the published code: other readings of the knowledge gradient's update."""

Departure = Literal[CodeDeparture, OtherDeparture]

DEPARTURES: tuple[CodeDeparture, ...] = get_args(CodeDeparture)
"""Those of the published code, for which `code` stands."""

READINGS: Mapping[Departure, Reading] = {"noisy-update": "noisy", "shrunk-twice-update": "shrunk-twice"}
"""The readings of the knowledge gradient that departures stand for."""

SEARCH_SAMPLES = 512
"""Number of samples of expected improvement in the published code's search."""

LAST = 100
"""Number of observations that the published code trains on after its first round."""


class SparseOptions(Options):
    """Options of every method with an SVGP; defaults of AABO, table 1, where it gives them.

    Attributes:
        kernel: squared exponential (as in the code; the text names none) or Matern-5/2, with one lengthscale.
        inducing: number of inducing points.
        objective: ELBO, or the objective of PPGPR.
        training: options of the training in each round.
        improvement: expected improvement, or its logarithm: the same maximiser without vanishing gradients.
        search: the multi-start search for the acquisition function's maximiser.
        mc_samples: number of quasi-random samples where an expectation has no closed form.
        variant: `paper`; `code`, with all departures of the published code; or a list of departures, with at most one
            other reading of the knowledge gradient.
    """

    kernel: SparseKernel = "rbf"
    inducing: PositiveInt = 100
    objective: Objective = "elbo"
    training: TrainingOptions = TrainingOptions()
    improvement: Literal["plain", "log"] = "plain"
    search: SearchOptions = SearchOptions()
    mc_samples: PositiveInt = 64
    variant: Variant[Departure] = "paper"

    @model_validator(mode="after")
    def _one_reading(self) -> Self:
        if self.departures.issuperset(READINGS):
            raise ValueError(
                f"`variant` has {' and '.join(READINGS)}: keep one, they are readings of the same sentence"
            )
        return self

    @property
    def departures(self) -> frozenset[Departure]:
        """The departures in force."""
        return departures_of(self.variant, DEPARTURES)

    @property
    def reading(self) -> Reading:
        """How the knowledge gradient imagines an observation and conditions on it."""
        return next((reading for name, reading in READINGS.items() if name in self.departures), "noise-free")

    @property
    def noisy(self) -> bool:
        """Whether improvement, quality of inducing points and posterior samples concern observations, not f."""
        return "improvement-of-observations" in self.departures

    @property
    def first_training(self) -> TrainingOptions:
        """The options of the training before any refinement."""
        return self.training.model_copy(update=self.stopping_rule)

    @property
    def stopping_rule(self) -> dict[str, str | int]:
        """What departures change of the rule by which trainings stop."""
        rule: dict[str, str | int] = {}
        if "failures-in-total" in self.departures:
            rule |= {"counted": "in total", "epochs": self.training.epochs + 1}
        if "minibatches-alike" in self.departures:
            rule |= {"judged": "by minibatch"}
        return rule


class PlacedOptions(SparseOptions):
    """Options of methods that place inducing points anew in each round.

    Attributes:
        baseline: what the quality of a datum, its expected improvement, is over: the greatest posterior mean, or the
            least, as in the library of Moss et al.
    """

    baseline: Baseline = "greatest mean"
