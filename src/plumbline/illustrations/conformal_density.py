"""The density of a label under the conformal posterior: CBO, figure 4."""

import math
from collections.abc import Sequence

import pandas as pd
import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.illustrations.base import grid, illustrations, interval_rows, rows, table
from plumbline.illustrations.line import LineOptions, fit_line, observe
from plumbline.methods.conformal.density_ratio import no_shift
from plumbline.methods.conformal.method import conformal_predictor


class DensityOptions(LineOptions):
    """Options of the illustration.

    Attributes:
        x: input of the label, in [-1, 1].
        alpha: miscoverage level.
        points: number of labels at which the density is shown.
        reach: greatest distance of these labels from the mean, in predictive standard deviations.
    """

    x: float = Field(default=-0.5, ge=-1.0, le=1.0)
    alpha: float = Field(default=0.19, gt=0.0, lt=1.0)
    points: PositiveInt = 2001
    reach: PositiveFloat = 4.0


def probability(forecast: GaussianPredictive, intervals: Sequence[tuple[float, float]]) -> float:
    """Return the probability of a union of disjoint intervals under the forecast of one point."""
    ends = torch.tensor(intervals, dtype=torch.float64).reshape(-1, 2)
    return float((forecast.cdf(ends[:, 1]) - forecast.cdf(ends[:, 0])).sum())


def inside(y: Tensor, intervals: Sequence[tuple[float, float]]) -> Tensor:
    """Return a mask of the labels `y` that lie in a union of intervals."""
    return torch.stack([torch.zeros_like(y, dtype=torch.bool), *((y >= a) & (y <= b) for a, b in intervals)]).any(dim=0)


def conformal_density_at(
    y: Tensor, forecast: GaussianPredictive, intervals: Sequence[tuple[float, float]], alpha: float
) -> Tensor:
    """Return the conformal density of labels `y`; CBO, section 4.2.

    It is uniform on the set, with mass `1 - alpha`, and outside it is the forecast's density, scaled to mass `alpha`.

    Raises:
        PlumblineError: the set is empty or unbounded, so that there is no density.
    """
    length = sum(high - low for low, high in intervals)
    if not 0 < length < math.inf:
        raise PlumblineError(f"the conformal set has length {length}: the conformal posterior is improper there")
    outside = alpha / (1 - probability(forecast, intervals)) * forecast.log_prob(y).exp()
    return torch.where(inside(y, intervals), (1 - alpha) / length, outside)


@illustrations.register("conformal-density", DensityOptions)
def conformal_density(options: DensityOptions, generator: Generator) -> pd.DataFrame:
    """The density of a label at one point under the conformal posterior and under the Gaussian posterior."""
    model = fit_line(observe(options, generator))
    predict = conformal_predictor([model], no_shift)
    forecast = predict(torch.tensor([[options.x]], dtype=torch.float64))
    (intervals,) = forecast.edges(options.alpha)
    mean, sd = forecast.mean.item(), forecast.sd.item()
    y = mean + sd * grid(options.points, -options.reach, options.reach)
    half = float(forecast.half_width(options.alpha))
    conformal = conformal_density_at(y, forecast, intervals, options.alpha)
    return table(
        [
            rows("density", "plain", x=y, value=forecast.log_prob(y).exp()),
            rows("density", "conformal", x=y, value=conformal),
            interval_rows("density", "set", [options.x], [intervals]),
            interval_rows("density", "credible", [options.x], [[(mean - half, mean + half)]]),
            rows("density", "alpha", value=options.alpha),
        ]
    )
