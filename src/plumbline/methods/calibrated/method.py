"""Calibrated Bayesian optimisation: any Gaussian-process method on a model recalibrated each round."""

from dataclasses import replace
from typing import Any, cast

from torch import Tensor

from plumbline.core.history import History
from plumbline.methods.base import methods
from plumbline.methods.calibrated.recalibration import Recalibrator, recalibrated_scale
from plumbline.methods.calibrated.splits import Splits, forecast_cdf, refitted
from plumbline.methods.composed import Choice, Round, Steps
from plumbline.methods.gp.single_outcome import GPMethod
from plumbline.methods.wrapper import ComposedWrapper, ComposedWrapperOptions
from plumbline.models.gp.process import GP


class CalibratedOptions(ComposedWrapperOptions):
    """Options of calibrated Bayesian optimisation; CAL, Algorithms 2 to 4.

    Attributes:
        base: the method whose model is recalibrated.
        splits: splits of the data into training rows and forecast rows.
        recalibrator: regression of empirical levels on nominal ones: a Gaussian process as in the paper, isotonic, or
            none.
        refit: train a model on each split, as in Algorithm 4; else use closed forms at the hyperparameters of all data.
    """

    needs = frozenset({"steps", "one gp", "batched fit"})

    splits: Splits = "leave-one-out"
    recalibrator: Recalibrator = "gp"
    refit: bool = True


@methods.register("calibrated", CalibratedOptions)
class CalibratedMethod(ComposedWrapper):
    """Any GP method with a rescaled standard deviation under which past forecasts would have been calibrated."""

    options: CalibratedOptions

    @property
    def steps(self) -> Steps[Any]:
        """The base's steps with a recalibrated surrogate."""
        return replace(self.base.steps.with_fit(self.fit), notes=self.notes)

    def fit(self, data: History) -> GP:
        """Return the base's process with a recalibrated deviation; CAL, Algorithm 2."""
        surrogate: GP = self.base.steps.fit(data)
        cdf = self._refitted(surrogate, data) if self.options.refit else forecast_cdf(surrogate, self.options.splits)
        return replace(surrogate, deviation=recalibrated_scale(cdf.numpy(), self.options.recalibrator))

    def notes(self, choice: Choice[GP], round: Round) -> dict[str, float]:
        """Return the base's notes and the factor of its deviation."""
        return {**self.base.steps.notes(choice, round), "sd_scale": choice.surrogate.deviation}

    def _refitted(self, surrogate: GP, data: History) -> Tensor:
        def fit(X: Tensor, Y: Tensor) -> GP:
            process: GP = self.base.steps.fit(History(X, Y))
            return process

        fit_each = cast(GPMethod, self.base).fit_each
        return refitted(fit, surrogate, data.X, data.Y, self.options.splits, fit_each)
