"""Optimisation of several outcomes by hypervolume: BoTorch's acquisitions, and their conformal kin (CBO, B.5)."""

from collections.abc import Sequence

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.multi_objective.logei import (
    qLogExpectedHypervolumeImprovement,
    qLogNoisyExpectedHypervolumeImprovement,
)
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from pydantic import PositiveInt
from torch import Generator, Tensor

from plumbline.acquisition.baseline import draw_baseline
from plumbline.acquisition.conformal import Utility
from plumbline.acquisition.hypervolume import free_cells, hypervolume_improvement
from plumbline.calibration.predictive import JointGaussianPredictive
from plumbline.errors import PlumblineError
from plumbline.history import History
from plumbline.methods.base import Domain, Predictor, methods
from plumbline.methods.composed import ComposedMethod, Round, whole
from plumbline.methods.conformal import ConformalMethod, ConformalOptions, fit_outcomes, standardised
from plumbline.methods.gp import GPOptions, base_samples, gaussian_predictor
from plumbline.models.exact_process import ExactProcess
from plumbline.models.process_model import ProcessModel
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


def joint_predictor(processes: Sequence[ExactProcess]) -> Predictor:
    """Return what maps `n x d` points to forecasts of all outcomes."""

    def predict(points: Tensor) -> JointGaussianPredictive:
        with torch.no_grad():
            forecasts = [gaussian_predictor(process)(points) for process in processes]
            mean = torch.stack([one.mean for one in forecasts], dim=-1)
            return JointGaussianPredictive(mean, torch.stack([one.sd for one in forecasts], dim=-1))

    return predict


class HypervolumeMethod(ComposedMethod[list[ExactProcess]]):
    """One Gaussian process an outcome; a subclass says which hypervolume improvement is expected."""

    takes = "several objectives"
    options: GPOptions

    def seen(self, history: History) -> History:
        """Return all of the history: each outcome's model sees where that outcome was observed."""
        return history

    def fit(self, data: History) -> list[ExactProcess]:
        """Return one model an outcome."""
        return fit_outcomes(data, self.domain.bounds, self.options.model)

    def predictive(self, surrogate: list[ExactProcess]) -> Predictor:
        """Return the models' joint predictions."""
        return joint_predictor(surrogate)


@methods.register("ehvi", GPOptions)
class ExpectedHypervolumeImprovement(HypervolumeMethod):
    """Expected hypervolume improvement over the observed front (BoTorch's qLogEHVI: the same maximiser)."""

    def utility(self, surrogate: list[ExactProcess], round: Round) -> AcquisitionFunction:
        """Return qLogEHVI."""
        partitioning = FastNondominatedPartitioning(ref_point=known_point(self.domain), Y=whole(round.data).Y)
        return qLogExpectedHypervolumeImprovement(
            ProcessModel(*surrogate),
            known_point(self.domain),
            partitioning,
            sampler=base_samples(self.options.mc_samples, round.seed),
        )


@methods.register("nehvi", GPOptions)
class NoisyExpectedHypervolumeImprovement(HypervolumeMethod):
    """Noisy expected hypervolume improvement: the front so far is itself uncertain (BoTorch's qLogNEHVI)."""

    def utility(self, surrogate: list[ExactProcess], round: Round) -> AcquisitionFunction:
        """Return qLogNEHVI."""
        return qLogNoisyExpectedHypervolumeImprovement(
            ProcessModel(*surrogate),
            known_point(self.domain),
            round.data.X,
            sampler=base_samples(self.options.mc_samples, round.seed),
            prune_baseline=True,
        )


@methods.register("cehvi", ConformalOptions)
class ConformalExpectedHypervolumeImprovement(ConformalMethod):
    """Conformal expected hypervolume improvement over the observed front; CBO, eq. 12."""

    takes = "several objectives"

    def gain(self, processes: Sequence[ExactProcess], data: History, alpha: float, generator: Generator) -> Utility:
        """Return the volume gained over the observed front, in standardised units."""
        ref_point = standardised(processes, known_point(self.domain).unsqueeze(0)).squeeze(0)
        lower, upper = free_cells(ref_point, standardised(processes, data.Y))
        return Utility(lambda f, mean: hypervolume_improvement(f, lower, upper))


class NoisyHypervolumeOptions(ConformalOptions):
    """Options of conformal noisy expected hypervolume improvement.

    Attributes:
        fronts: distinct draws of the front so far; each must be cut into boxes, which is dear in three outcomes.
    """

    fronts: PositiveInt = 16


@methods.register("cnehvi", NoisyHypervolumeOptions)
class ConformalNoisyExpectedHypervolumeImprovement(ConformalMethod):
    """Conformal noisy expected hypervolume improvement: over the front of a joint draw at the data; CBO, eq. 13."""

    takes = "several objectives"
    options: NoisyHypervolumeOptions

    def gain(self, processes: Sequence[ExactProcess], data: History, alpha: float, generator: Generator) -> Utility:
        """Return the volume gained over the front of each draw, in standardised units."""
        ref_point = standardised(processes, known_point(self.domain).unsqueeze(0)).squeeze(0)
        k, fronts = self.options.posterior.candidates, self.options.fronts
        baseline = draw_baseline(processes, k, generator, fronts)
        turns = torch.arange(k) % fronts
        lower, upper = (corners[turns] for corners in free_cells(ref_point, baseline.values[:fronts]))
        return Utility(lambda f, mean: hypervolume_improvement(f, lower, upper), baseline=baseline)
