"""Calibrated Bayesian optimisation: any Gaussian-process method on a model that is recalibrated each round."""

from dataclasses import replace
from typing import Any, ClassVar

from torch import Tensor

from plumbline.acquisition.scaling import ScaledDeviation
from plumbline.calibration.recalibration import Recalibrator, recalibrated_scale
from plumbline.calibration.splits import Splits, forecast_cdf, refitted
from plumbline.history import History
from plumbline.methods.base import Proposal, methods
from plumbline.methods.composed import Round
from plumbline.methods.gp import GPMethod, SeenProcess
from plumbline.methods.wrapper import ComposedWrapper, WrapperOptions


class CalibratedOptions(WrapperOptions):
    """Options of calibrated Bayesian optimisation; CAL, Algorithms 2 to 4.

    Attributes:
        base: the method whose model is recalibrated.
        splits: how the data are cut into what a model sees and what it forecasts.
        recalibrator: the model of how levels come true: a Gaussian process as in the paper, isotonic, or none.
        refit: fit hyperparameters anew on each split, as the paper's text has it, instead of the closed forms.
    """

    splits: Splits = "leave-one-out"
    recalibrator: Recalibrator = "gp"
    refit: bool = False


@methods.register("calibrated", CalibratedOptions)
class CalibratedMethod(ComposedWrapper):
    """Any GP method with its standard deviation rescaled so that past forecasts would have been calibrated."""

    takes = "one objective"
    wraps: ClassVar[type] = GPMethod
    wants = "a method with an exact Gaussian process to recalibrate, such as 'ei'"
    options: CalibratedOptions

    def fit(self, data: History) -> SeenProcess:
        """Return the base's model, seen with its recalibrated deviation; CAL, Algorithm 2."""
        surrogate: SeenProcess = self.base.fit(data)
        cdf = self._refitted_cdf(data) if self.options.refit else forecast_cdf(surrogate.model, self.options.splits)
        scale = recalibrated_scale(cdf.numpy(), self.options.recalibrator)
        return replace(surrogate, transform=ScaledDeviation(scale))

    def propose(self, surrogate: SeenProcess, round: Round) -> Proposal:
        """Return what the base proposes under the recalibrated model."""
        proposal = super().propose(surrogate, round)
        assert isinstance(surrogate.transform, ScaledDeviation)
        return replace(proposal, notes={**proposal.notes, "sd_scale": surrogate.transform.factor})

    def _refitted_cdf(self, data: History) -> Tensor:
        def fit(X: Tensor, Y: Tensor) -> Any:
            return self.base.fit(History(X, Y)).model

        return refitted(fit, data.X, data.Y, self.options.splits)
