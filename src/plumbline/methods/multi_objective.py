"""Optimisation of several outcomes by hypervolume: expected, noisy, and their conformal kin (CBO, B.5)."""

from collections.abc import Sequence
from typing import Literal, cast

import torch
from botorch.acquisition import AcquisitionFunction
from pydantic import PositiveInt
from torch import Generator, Tensor

from plumbline.acquisition.baseline import draw_baseline
from plumbline.acquisition.conformal import Utility
from plumbline.acquisition.expected_hypervolume import ExpectedHypervolume, noisy_hypervolume
from plumbline.acquisition.hypervolume import free_cells, hypervolume_improvement
from plumbline.calibration.density_ratio import LogRatio
from plumbline.calibration.marginal_predictive import MarginalPredictive
from plumbline.calibration.predictive import Predictive
from plumbline.errors import PlumblineError
from plumbline.history import History
from plumbline.methods.base import Domain, Predictor, methods
from plumbline.methods.composed import Round, whole
from plumbline.methods.conformal import ConformalMethod, ConformalOptions, standardised
from plumbline.methods.gp import GPOptions, gaussian_predictor
from plumbline.methods.independent import IndependentMethod
from plumbline.models.exact_process import ExactProcess
from plumbline.reference_point import reference_point


def known_point(domain: Domain) -> Tensor:
    """Return what several objectives must exceed to count in the hypervolume, `m`.

    Raises:
        PlumblineError: they have no reference points.
    """
    point = reference_point(domain.outcomes)
    if point is None:
        raise PlumblineError("hypervolume needs a problem with several outcomes and a reference point")
    return point


def marginal_predictor(outcomes: Sequence[Predictor]) -> Predictor:
    """Return what maps `n x d` points to forecasts of all outcomes with a set each."""
    return lambda points: MarginalPredictive([cast(Predictive, predict(points)) for predict in outcomes])


Sets = Literal["joint", "marginal"]
"""Whether a set is one of all outcomes, or one an outcome, whose memberships are averaged, as in CBO's code."""


class HypervolumeOptions(GPOptions):
    """Options of hypervolume improvement.

    Attributes:
        sets: `joint` or `marginal`.
    """

    sets: Sets = "joint"


class HypervolumeMethod(IndependentMethod):
    """One Gaussian process an outcome; a subclass says which hypervolume improvement is expected."""

    takes = "several objectives"
    options: HypervolumeOptions

    def predictive(self, surrogate: list[ExactProcess]) -> Predictor:
        """Return the models' predictions."""
        if self.options.sets == "marginal":
            return marginal_predictor([gaussian_predictor(process) for process in surrogate])
        return super().predictive(surrogate)


@methods.register("ehvi", HypervolumeOptions)
class ExpectedHypervolumeImprovement(HypervolumeMethod):
    """Expected hypervolume improvement over the observed front (BoTorch's qLogEHVI: the same maximiser)."""

    def utility(self, surrogate: list[ExactProcess], round: Round) -> AcquisitionFunction:
        """Return qLogEHVI."""
        Y = whole(round.data).Y
        return ExpectedHypervolume(surrogate, known_point(self.domain), Y, self.options.mc_samples, round.seed)


@methods.register("nehvi", HypervolumeOptions)
class NoisyExpectedHypervolumeImprovement(HypervolumeMethod):
    """Noisy expected hypervolume improvement: the front so far is itself uncertain (BoTorch's qLogNEHVI)."""

    def utility(self, surrogate: list[ExactProcess], round: Round) -> AcquisitionFunction:
        """Return qLogNEHVI."""
        return noisy_hypervolume(surrogate, known_point(self.domain), round.data.X, self.options.mc_samples, round.seed)


class ConformalHypervolumeOptions(ConformalOptions):
    """Options of conformal hypervolume improvement.

    Attributes:
        sets: `joint` or `marginal`; utilities are expected under the joint ones, either way.
    """

    sets: Sets = "joint"


class ConformalHypervolumeMethod(ConformalMethod):
    """Conformal optimisation of several outcomes."""

    takes = "several objectives"
    options: ConformalHypervolumeOptions

    def _predictor(self, processes: Sequence[ExactProcess], log_ratio: LogRatio) -> Predictor:
        """Return forecasts with joint sets of all outcomes, or with one an outcome."""
        if self.options.sets == "joint":
            return super()._predictor(processes, log_ratio)
        outcomes = [super(ConformalHypervolumeMethod, self)._predictor([one], log_ratio) for one in processes]
        return marginal_predictor(outcomes)


@methods.register("cehvi", ConformalHypervolumeOptions)
class ConformalExpectedHypervolumeImprovement(ConformalHypervolumeMethod):
    """Conformal expected hypervolume improvement over the observed front; CBO, eq. 12."""

    def gain(self, processes: Sequence[ExactProcess], data: History, alpha: float, generator: Generator) -> Utility:
        """Return the volume gained over the observed front, in standardised units."""
        ref_point = standardised(processes, known_point(self.domain).unsqueeze(0)).squeeze(0)
        lower, upper = free_cells(ref_point, standardised(processes, data.Y))
        return Utility(lambda f, mean: hypervolume_improvement(f, lower, upper))


class NoisyHypervolumeOptions(ConformalHypervolumeOptions):
    """Options of conformal noisy expected hypervolume improvement.

    Attributes:
        fronts: distinct draws of the front so far; each is cut into boxes, of which there are many in three outcomes.
    """

    fronts: PositiveInt = 16


@methods.register("cnehvi", NoisyHypervolumeOptions)
class ConformalNoisyExpectedHypervolumeImprovement(ConformalHypervolumeMethod):
    """Conformal noisy expected hypervolume improvement: over the front of a joint draw at the data; CBO, eq. 13."""

    options: NoisyHypervolumeOptions

    def gain(self, processes: Sequence[ExactProcess], data: History, alpha: float, generator: Generator) -> Utility:
        """Return the volume gained over the front of each draw, in standardised units."""
        ref_point = standardised(processes, known_point(self.domain).unsqueeze(0)).squeeze(0)
        k, fronts = self.options.posterior.candidates, self.options.fronts
        baseline = draw_baseline(processes, k, generator, fronts)
        turns = torch.arange(k) % fronts
        lower, upper = (corners[turns] for corners in free_cells(ref_point, baseline.values[:fronts]))
        return Utility(lambda f, mean: hypervolume_improvement(f, lower, upper), baseline=baseline)
