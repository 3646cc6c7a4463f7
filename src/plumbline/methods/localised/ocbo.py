"""OCBO: quantiles recalibrated online, with or without localisation."""

from collections.abc import Callable

from pydantic import PositiveInt
from torch import Tensor

from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.base import methods
from plumbline.methods.composed import Round
from plumbline.methods.localised.forecasts import QuantilePredictive
from plumbline.methods.localised.law import Slopes
from plumbline.methods.localised.online import OnlineMethod, OnlineMethodOptions, WithSlopes
from plumbline.methods.localised.quantile_recalibration import (
    RecalibratedPredictive,
    ReweightedGaussian,
    levels,
    monotone_with_vjp,
)


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

    def admissible(self, raw: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the recalibrated levels in increasing order."""
        return monotone_with_vjp(raw)

    def value(self, best: Tensor, noise: Tensor, round: Round) -> WithSlopes:
        """Return the expected improvement of an observation (not of f) over the best one."""

        def improvement(mean: Tensor, sd: Tensor, R: Tensor) -> tuple[Tensor, Slopes]:
            scale = (sd.square() + noise).sqrt()
            forecast = ReweightedGaussian(mean, scale, self.threshold.targets, R)
            value, grad_mean, grad_scale, grad_R = forecast.expected_improvement_with_slopes(best)
            return value, lambda: (grad_mean, grad_scale * sd / scale, grad_R)

        return improvement
