"""Optimisation of several outcomes by hypervolume: BoTorch's acquisitions, and their conformal kin (CBO, B.5)."""

from abc import abstractmethod
from collections.abc import Sequence
from time import perf_counter

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.multi_objective.logei import (
    qLogExpectedHypervolumeImprovement,
    qLogNoisyExpectedHypervolumeImprovement,
)
from botorch.models import ModelListGP, SingleTaskGP
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from pydantic import PositiveInt
from torch import Generator, Tensor

from plumbline.acquisition.baseline import draw_baseline
from plumbline.acquisition.conformal import Utility
from plumbline.acquisition.hypervolume import free_cells, hypervolume_improvement
from plumbline.acquisition.search import surface_of
from plumbline.calibration.conformal import factorise
from plumbline.calibration.predictive import JointGaussianPredictive
from plumbline.errors import PlumblineError
from plumbline.methods.base import Domain, History, Predictor, Proposal, methods
from plumbline.methods.conformal import ConformalMethod, ConformalOptions, fit_outcomes, standardised
from plumbline.methods.gp import GPOptions, SearchingMethod
from plumbline.seeding import draw_seed


def reference_point(domain: Domain) -> Tensor:
    """Return the domain's reference point, `m`.

    Raises:
        PlumblineError: there is none: the problem has one outcome.
    """
    if domain.ref_point is None:
        raise PlumblineError("hypervolume needs a problem with several outcomes and a reference point")
    return domain.ref_point


def joint_predictor(models: Sequence[SingleTaskGP]) -> Predictor:
    """Return what maps `n x d` points to forecasts of all outcomes."""

    def predict(points: Tensor) -> JointGaussianPredictive:
        with torch.no_grad():
            posterior = ModelListGP(*models).posterior(points, observation_noise=True)
            return JointGaussianPredictive(posterior.mean, posterior.variance.sqrt())

    return predict


class HypervolumeMethod(SearchingMethod):
    """The loop with one Gaussian process an outcome; a subclass says which hypervolume improvement is expected."""

    @abstractmethod
    def acquisition(self, model: ModelListGP, history: History, seed: int) -> AcquisitionFunction:
        """Return the acquisition under the models of all outcomes."""

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return the `q` points of greatest expected hypervolume improvement."""
        started = perf_counter()
        models = fit_outcomes(history, self.domain.bounds, self.options.model)
        fitted = perf_counter()
        seed = draw_seed(generator)
        utility = self.acquisition(ModelListGP(*models), history, seed)
        X = self.maximiser(utility, history, q, seed)
        seconds = {"fit": fitted - started, "acquire": perf_counter() - fitted}
        return Proposal(X, joint_predictor(models), surface_of(utility), seconds)

    def predictor(self, history: History) -> Predictor:
        """Return predictions from `history` alone."""
        return joint_predictor(fit_outcomes(history, self.domain.bounds, self.options.model))


@methods.register("ehvi", GPOptions)
class ExpectedHypervolumeImprovement(HypervolumeMethod):
    """Expected hypervolume improvement over the observed front (BoTorch's qLogEHVI: the same maximiser)."""

    def acquisition(self, model: ModelListGP, history: History, seed: int) -> AcquisitionFunction:
        """Return qLogEHVI."""
        ref_point = reference_point(self.domain)
        partitioning = FastNondominatedPartitioning(ref_point=ref_point, Y=history.Y)
        return qLogExpectedHypervolumeImprovement(model, ref_point, partitioning, sampler=self.sampler(seed))


@methods.register("nehvi", GPOptions)
class NoisyExpectedHypervolumeImprovement(HypervolumeMethod):
    """Noisy expected hypervolume improvement: the front so far is itself uncertain (BoTorch's qLogNEHVI)."""

    def acquisition(self, model: ModelListGP, history: History, seed: int) -> AcquisitionFunction:
        """Return qLogNEHVI."""
        return qLogNoisyExpectedHypervolumeImprovement(
            model, reference_point(self.domain), history.X, sampler=self.sampler(seed), prune_baseline=True
        )


@methods.register("cehvi", ConformalOptions)
class ConformalExpectedHypervolumeImprovement(ConformalMethod):
    """Conformal expected hypervolume improvement over the observed front; CBO, eq. 12."""

    def utility(self, models: Sequence[SingleTaskGP], history: History, alpha: float, generator: Generator) -> Utility:
        """Return the volume gained over the observed front, in standardised units."""
        ref_point = standardised(models, reference_point(self.domain).unsqueeze(0)).squeeze(0)
        lower, upper = free_cells(ref_point, standardised(models, history.Y))
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

    options: NoisyHypervolumeOptions

    def utility(self, models: Sequence[SingleTaskGP], history: History, alpha: float, generator: Generator) -> Utility:
        """Return the volume gained over the front of each draw, in standardised units."""
        ref_point = standardised(models, reference_point(self.domain).unsqueeze(0)).squeeze(0)
        factors = [factorise(model) for model in models]
        k, fronts = self.options.posterior.candidates, self.options.fronts
        baseline = draw_baseline(factors, k, generator, fronts)
        turns = torch.arange(k) % fronts
        lower, upper = (corners[turns] for corners in free_cells(ref_point, baseline.values[:fronts]))
        return Utility(lambda f, mean: hypervolume_improvement(f, lower, upper), baseline=baseline)
