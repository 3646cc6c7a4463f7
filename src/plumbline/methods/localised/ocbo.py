"""OCBO: quantiles recalibrated online, with or without localisation."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from pydantic import PositiveInt
from torch import Tensor

from plumbline.core.numbers import Array
from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.base import methods
from plumbline.methods.composed import Round
from plumbline.methods.localised.forecasts import QuantilePredictive
from plumbline.methods.localised.law import Slopes
from plumbline.methods.localised.online import Form, OfParameters, OnlineMethod, OnlineMethodOptions
from plumbline.methods.localised.quantile_recalibration import (
    RecalibratedPredictive,
    ReweightedGaussian,
    levels,
    monotone_with_vjp,
)
from plumbline.methods.localised.thresholds import WithVjp


class RecalibratedOptions(OnlineMethodOptions):
    """Options of OCBO, whose localised version has `kappa > 0`.

    Attributes:
        levels: number of recalibrated quantile levels, equally spaced.
    """

    levels: PositiveInt = 19


@methods.register("ocbo", RecalibratedOptions)
class RecalibratedMethod(OnlineMethod):
    """OCBO: expected improvement with quantiles recalibrated online; OCBO-L where `online.kappa > 0`."""

    options: RecalibratedOptions

    def targets(self) -> Tensor:
        """Return the levels of the quantiles."""
        return levels(self.options.levels)

    def events(self, forecast: QuantilePredictive, y: Tensor) -> Tensor:
        """Return 1 for each quantile that an observation does not exceed, else 0."""
        at = self.targets().unsqueeze(-1).expand(-1, len(y))
        return (y <= forecast.quantile(at)).to(y.dtype).mT

    def calibrated(self, plain: GaussianPredictive, X: Tensor) -> RecalibratedPredictive:
        """Return the recalibrated forecast; eq. 20."""
        return RecalibratedPredictive(
            ReweightedGaussian(plain.mean, plain.sd, self.threshold.targets, self.thresholds_at(X))
        )

    @property
    def admissible(self) -> Callable[[Array], WithVjp]:
        """A function that brings levels into increasing order."""
        return monotone_with_vjp

    def value(self, best: Tensor, noise: Tensor, round: Round) -> Form:
        """Return the expected improvement of an observation (not of f) over the best one."""
        return OfParameters(RecalibratedImprovement(self.options.levels), float(best), float(noise))


@dataclass(frozen=True)
class RecalibratedImprovement:
    """Expected improvement of an observation with recalibrated quantiles.

    Attributes:
        levels: number of recalibrated quantile levels.
    """

    levels: int

    def __call__(self, mean: Array, sd: Array, R: Array, best: Array, noise: Array) -> tuple[Array, Slopes[Array]]:
        """Return values and derivatives; see `Form`. `R` are the recalibrated levels."""
        scale = np.sqrt(sd * sd + noise)
        forecast = ReweightedGaussian(mean, scale, levels(self.levels).numpy(), R)
        value, grad_mean, grad_scale, grad_R = forecast.expected_improvement_with_slopes(best)
        return value, lambda: (grad_mean, grad_scale * sd / scale, grad_R)
