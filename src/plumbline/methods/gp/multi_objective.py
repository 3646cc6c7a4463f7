"""Optimisation of several outcomes by expected and noisy expected hypervolume improvement (CBO, B.5)."""

from collections.abc import Sequence
from typing import Literal, cast

from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from plumbline.acquisition.hypervolume.expected import ExpectedHypervolume, noisy_hypervolume
from plumbline.core.errors import PlumblineError
from plumbline.core.reference_point import reference_point
from plumbline.forecasts.predictive import MarginalPredictive, Predictive
from plumbline.methods.base import Domain, Predictor, methods
from plumbline.methods.composed import Round, complete_rows
from plumbline.methods.gp.independent import IndependentMethod
from plumbline.methods.gp.single_outcome import GPOptions, gaussian_predictor
from plumbline.models.gp.process import GP


def known_point(domain: Domain) -> Tensor:
    """Return the reference point of the hypervolume, `m`.

    Raises:
        PlumblineError: the objectives have no reference point.
    """
    point = reference_point(domain.outcomes)
    if point is None:
        raise PlumblineError("hypervolume needs a problem with several outcomes and a reference point")
    return point


def marginal_predictor(outcomes: Sequence[Predictor]) -> Predictor:
    """Return a map of `n x d` points to forecasts of all outcomes with a set each."""
    return lambda points: MarginalPredictive([cast(Predictive, predict(points)) for predict in outcomes])


Sets = Literal["joint", "marginal"]
"""One joint set of all outcomes, or one set an outcome, whose memberships are averaged, as in CBO's code."""


class HypervolumeOptions(GPOptions):
    """Options of hypervolume improvement.

    Attributes:
        sets: `joint` or `marginal`.
    """

    sets: Sets = "joint"


class HypervolumeMethod(IndependentMethod):
    """One Gaussian process an outcome; a subclass gives the hypervolume improvement."""

    takes = "several objectives"
    options: HypervolumeOptions

    def predictive(self, surrogate: list[GP]) -> Predictor:
        """Return the models' predictions."""
        if self.options.sets == "marginal":
            return marginal_predictor([gaussian_predictor(process) for process in surrogate])
        return super().predictive(surrogate)


@methods.register("ehvi", HypervolumeOptions)
class ExpectedHypervolumeImprovement(HypervolumeMethod):
    """Expected hypervolume improvement over the observed front (BoTorch's qLogEHVI: the same maximiser)."""

    def utility(self, surrogate: list[GP], round: Round) -> AcquisitionFunction:
        """Return qLogEHVI."""
        Y = complete_rows(round.data).Y
        return ExpectedHypervolume(surrogate, known_point(self.domain), Y, self.options.mc_samples, round.seed)


@methods.register("nehvi", HypervolumeOptions)
class NoisyExpectedHypervolumeImprovement(HypervolumeMethod):
    """Noisy expected hypervolume improvement: the current front is itself uncertain (BoTorch's qLogNEHVI)."""

    def utility(self, surrogate: list[GP], round: Round) -> AcquisitionFunction:
        """Return qLogNEHVI."""
        return noisy_hypervolume(surrogate, known_point(self.domain), round.data.X, self.options.mc_samples, round.seed)
