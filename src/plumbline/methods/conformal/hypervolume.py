"""Conformal hypervolume improvement, of several outcomes."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from pydantic import PositiveInt, field_validator
from torch import Generator

from plumbline.acquisition.hypervolume.improvement import free_cells, hypervolume_improvement
from plumbline.core.history import History
from plumbline.methods.base import Predictor, methods
from plumbline.methods.conformal.acquisition import ConformalPosteriorOptions, Integrand
from plumbline.methods.conformal.baseline import draw_baseline
from plumbline.methods.conformal.density_ratio import LogRatio
from plumbline.methods.conformal.method import ConformalMethod, ConformalOptions, standardised
from plumbline.methods.conformal.variants import CODE
from plumbline.methods.gp.multi_objective import Sets, known_point, marginal_predictor
from plumbline.models.gp.process import GP


class ConformalHypervolumeOptions(ConformalOptions):
    """Options of conformal hypervolume improvement.

    Attributes:
        sets: forecast sets, `joint` or `marginal`; acquisition values rest on joint sets either way.
    """

    sets: Sets = "joint"


class ConformalHypervolumeMethod(ConformalMethod):
    """Conformal optimisation of several outcomes."""

    takes = "several objectives"
    provides = ConformalMethod.provides - {"lockstep"}
    options: ConformalHypervolumeOptions

    def _predictor(self, processes: Sequence[GP], log_ratio: LogRatio) -> Predictor:
        """Return forecasts with joint sets of all outcomes, or with one an outcome."""
        if self.options.sets == "joint":
            return super()._predictor(processes, log_ratio)
        outcomes = [super(ConformalHypervolumeMethod, self)._predictor([one], log_ratio) for one in processes]
        return marginal_predictor(outcomes)


@methods.register("cehvi", ConformalHypervolumeOptions)
class ConformalExpectedHypervolumeImprovement(ConformalHypervolumeMethod):
    """Conformal expected hypervolume improvement over the observed front; CBO, eq. 12."""

    def integrand(self, processes: Sequence[GP], data: History, alpha: float, generator: Generator) -> Integrand:
        """Return the hypervolume improvement over the observed front, in standardised units."""
        ref_point = standardised(processes, known_point(self.domain).unsqueeze(0)).squeeze(0)
        lower, upper = free_cells(ref_point, standardised(processes, data.Y))
        return Integrand(lambda f, mean: hypervolume_improvement(f, lower, upper))


class NoisyHypervolumeOptions(ConformalHypervolumeOptions):
    """Options of conformal noisy expected hypervolume improvement.

    The gradient at constant labels is not derived for draws of a front: labels move, also under `variant: code`.

    Attributes:
        fronts: distinct draws of the current front; each is cut into boxes, of which three outcomes need many.
    """

    code: ClassVar[tuple[str, ...]] = tuple(name for name in CODE if name != "constant-labels")

    fronts: PositiveInt = 16

    @field_validator("posterior")
    @classmethod
    def _labels_move(cls, posterior: ConformalPosteriorOptions) -> ConformalPosteriorOptions:
        if posterior.labels_in_gradient == "constant":
            raise ValueError("constant labels have no gradient here, where fronts are drawn: leave them `moving`")
        return posterior


@methods.register("cnehvi", NoisyHypervolumeOptions)
class ConformalNoisyExpectedHypervolumeImprovement(ConformalHypervolumeMethod):
    """Conformal noisy expected hypervolume improvement: over the front of a joint draw at the data; CBO, eq. 13."""

    options: NoisyHypervolumeOptions

    def integrand(self, processes: Sequence[GP], data: History, alpha: float, generator: Generator) -> Integrand:
        """Return the hypervolume improvement over the front of each draw, in standardised units."""
        ref_point = standardised(processes, known_point(self.domain).unsqueeze(0)).squeeze(0)
        k, fronts = self.options.posterior.candidates, self.options.fronts
        baseline = draw_baseline(processes, k, generator, fronts)
        turns = torch.arange(k) % fronts
        lower, upper = (corners[turns] for corners in free_cells(ref_point, baseline.values[:fronts]))
        return Integrand(lambda f, mean: hypervolume_improvement(f, lower, upper), baseline=baseline)
