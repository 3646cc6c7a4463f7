"""Calibrated Bayesian optimisation: any Gaussian-process method on a model that is recalibrated each round."""

from time import perf_counter
from typing import Any, Literal, Self

from botorch.models import SingleTaskGP
from pydantic import Field, model_validator
from torch import Generator, Tensor

from plumbline.acquisition.scaling import ScaledDeviation
from plumbline.calibration.recalibration import Recalibrator, recalibrated_scale
from plumbline.calibration.splits import Splits, forecast_cdf, refitted
from plumbline.errors import PlumblineError
from plumbline.methods.base import Domain, History, Method, Predictor, Proposal, build_method, methods
from plumbline.methods.gp import GPMethod, gaussian_predictor
from plumbline.models.exact import fit_gp
from plumbline.options import Options, parse


class CalibratedOptions(Options):
    """Options of calibrated Bayesian optimisation; CAL, Algorithms 2 to 4.

    Attributes:
        base: the method whose model is recalibrated, and `base_options`, its own options.
        splits: how the data are cut into what a model sees and what it forecasts.
        recalibrator: the model of how levels come true: a Gaussian process as in the paper, isotonic, or none.
        refit: fit hyperparameters anew on each split, as the paper's text has it, instead of the closed forms.
    """

    base: Literal["ei", "logei", "pi", "ucb", "nei"]
    base_options: dict[str, Any] = Field(default_factory=dict)
    splits: Splits = "leave-one-out"
    recalibrator: Recalibrator = "gp"
    refit: bool = False

    @model_validator(mode="after")
    def _base_options_are_the_bases(self) -> Self:
        try:
            parse(methods[self.base].options, self.base_options, "base_options")
        except PlumblineError as error:
            raise ValueError(str(error)) from error
        return self


@methods.register("calibrated", CalibratedOptions)
class CalibratedMethod(Method):
    """Any GP method with its standard deviation rescaled so that past forecasts would have been calibrated."""

    options: CalibratedOptions

    def __init__(self, domain: Domain, options: CalibratedOptions) -> None:
        super().__init__(domain, options)
        base = build_method(options.base, options.base_options, domain)
        if not isinstance(base, GPMethod):
            raise PlumblineError(f"calibrated: {options.base!r} has no Gaussian process to recalibrate")
        self.base = base

    def ask(self, history: History, q: int, generator: Generator) -> Proposal:
        """Return the `q` points of greatest utility under the recalibrated model; CAL, Algorithm 2."""
        started = perf_counter()
        model, scale = self._recalibrated(history)
        seconds = {"fit": perf_counter() - started}
        return self.base.propose(
            model, history, q, generator, ScaledDeviation(scale), seconds, notes={"sd_scale": scale}
        )

    def predictor(self, history: History) -> Predictor:
        """Return recalibrated predictions from `history` alone."""
        model, scale = self._recalibrated(history)
        return gaussian_predictor(model, ScaledDeviation(scale))

    def _recalibrated(self, history: History) -> tuple[SingleTaskGP, float]:
        """Return the model, and what its standard deviation is to be multiplied by."""
        model = self.base.fit(history)
        cdf = self._refitted_cdf(history) if self.options.refit else forecast_cdf(model, self.options.splits)
        return model, recalibrated_scale(cdf.numpy(), self.options.recalibrator)

    def _refitted_cdf(self, history: History) -> Tensor:
        def fit(X: Tensor, Y: Tensor) -> Any:
            return fit_gp(X, Y, self.domain.bounds, self.base.options.model)

        return refitted(fit, history.X, history.Y, self.options.splits)
