"""OCBO: quantiles that are recalibrated online, with localisation or without."""

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
        levels: how many quantile levels are recalibrated, equally spaced.
    """

    levels: PositiveInt = 19


@methods.register("ocbo", RecalibratedOptions)
class RecalibratedMethod(OnlineMethod):
    """OCBO: expected improvement with quantiles that are recalibrated online; OCBO-L where `online.kappa > 0`."""

    options: RecalibratedOptions

    def targets(self) -> Tensor:
        """Return the levels of the quantiles."""
        return levels(self.options.levels)

    def events(self, forecast: QuantilePredictive, y: Tensor) -> Tensor:
        """Return which quantiles the observations do not exceed."""
        at = self.targets().unsqueeze(-1).expand(-1, len(y))
        return (y <= forecast.quantile(at)).to(y.dtype).mT

    def calibrated(self, plain: GaussianPredictive, X: Tensor) -> RecalibratedPredictive:
        """Return the recalibrated forecast; eq. 20."""
        return RecalibratedPredictive(
            ReweightedGaussian(plain.mean, plain.sd, self.threshold.targets, self.thresholds_at(X))
        )

    def kept(self, raw: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the recalibrated levels in order."""
        return monotone_with_vjp(raw)

    def value(self, best: Tensor, noise: Tensor, round: Round) -> WithSlopes:
        """Return the expected gain over the best observation: the method takes observations for the function."""

        def gain(mean: Tensor, sd: Tensor, R: Tensor) -> tuple[Tensor, Slopes]:
            scale = (sd.square() + noise).sqrt()
            forecast = ReweightedGaussian(mean, scale, self.threshold.targets, R)
            found, grad_mean, grad_scale, grad_R = forecast.expected_improvement_with_slopes(best)
            return found, lambda: (grad_mean, grad_scale * sd / scale, grad_R)

        return gain
