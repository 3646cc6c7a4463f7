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
"""Departures of AABO's published code from its text; docs/methods/text-against-code.md has each in words."""

DEPARTURES: tuple[Departure, ...] = get_args(Departure)

LAST = 100
"""Observations that the published code trains on after its first round."""


class SparseOptions(Options):
    """Options of every method with a sparse variational process; defaults of AABO, table 1.

    Attributes:
        kernel: squared exponential (the code; the text does not say) or Matern-5/2, with one lengthscale.
        inducing: number of inducing points.
        objective: ELBO, or PPGPR's.
        training: how the process is trained in each round.
        improvement: expected improvement, or its logarithm: the same maximiser, gradients that do not vanish.
        search: the multi-start search for the acquisition's maximiser.
        mc_samples: quasi-random samples of utilities without a closed form.
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
        """What is done as in the published code."""
        return departures_of(self.variant, DEPARTURES)

    @property
    def noisy(self) -> bool:
        """Whether improvement, the quality of inducing points and posterior samples are of observations, not of f."""
        return "improvement-of-observations" in self.departures

    @property
    def first_training(self) -> TrainingOptions:
        """How the process is trained before anything is refined."""
        if "failures-in-total" in self.departures:
            return self.training.model_copy(update={"counted": "in total", "epochs": self.training.epochs + 1})
        return self.training
