"""Options of methods with an SVGP, and the departures of AABO's published code from its text."""

from typing import Literal, get_args

from pydantic import PositiveInt

from plumbline.core.options import Options
from plumbline.methods.variants import Variant, departures_of
from plumbline.models.algebra import SparseKernel
from plumbline.models.svgp.minibatches import TrainingOptions
from plumbline.models.svgp.objective import Objective
from plumbline.spaces.search import SearchOptions

Departure = Literal[
    "raw-inputs",
    "units-of-the-design",
    "last-hundred",
    "failures-in-total",
    "improvement-of-observations",
    "frozen-inducing",
    "utility-per-datum",
    "short-warm-start",
    "turns-by-epoch",
    "region-of-the-last-hundred",
    "improvement-before-gradient",
    "fixed-maximisers",
    "appended-update",
    "uncentred-update",
    "doubled-noise",
]
"""Departures of AABO's published code from its text; docs/methods/text-against-code.md describes each."""

DEPARTURES: tuple[Departure, ...] = get_args(Departure)

LAST = 100
"""Number of observations that the published code trains on after its first round."""


class SparseOptions(Options):
    """Options of every method with an SVGP; defaults of AABO, table 1.

    Attributes:
        kernel: squared exponential (as in the code; the text names none) or Matern-5/2, with one lengthscale.
        inducing: number of inducing points.
        objective: ELBO, or the objective of PPGPR.
        training: options of the training in each round.
        improvement: expected improvement, or its logarithm: the same maximiser without vanishing gradients.
        search: the multi-start search for the acquisition function's maximiser.
        mc_samples: number of quasi-random samples where an expectation has no closed form.
        variant: `paper`; `code`, with all departures of the published code; or a list of departures.
    """

    kernel: SparseKernel = "rbf"
    inducing: PositiveInt = 100
    objective: Objective = "elbo"
    training: TrainingOptions = TrainingOptions()
    improvement: Literal["plain", "log"] = "plain"
    search: SearchOptions = SearchOptions()
    mc_samples: PositiveInt = 64
    variant: Variant[Departure] = "paper"

    @property
    def departures(self) -> frozenset[Departure]:
        """The departures of the published code in force."""
        return departures_of(self.variant, DEPARTURES)

    @property
    def noisy(self) -> bool:
        """Whether improvement, quality of inducing points and posterior samples concern observations, not f."""
        return "improvement-of-observations" in self.departures

    @property
    def first_training(self) -> TrainingOptions:
        """The options of the training before any refinement."""
        if "failures-in-total" in self.departures:
            return self.training.model_copy(update={"counted": "in total", "epochs": self.training.epochs + 1})
        return self.training
