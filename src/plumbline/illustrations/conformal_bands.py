"""From a Bayes posterior to conformal sets: CBO, figure 3."""

import pandas as pd
import torch
from pydantic import Field, PositiveInt
from torch import Generator

from plumbline.illustrations.base import credible_rows, grid, illustrations, interval_rows, rows, table
from plumbline.illustrations.line import LineOptions, chirp, fit_line, observe
from plumbline.methods.conformal.density_ratio import no_shift
from plumbline.methods.conformal.method import conformal_predictor


class BandsOptions(LineOptions):
    """Options of the illustration.

    Attributes:
        alpha: miscoverage level of the conformal and the credible sets.
        points: number of equidistant points in [-1, 1] with sets.
        candidates: number of labels drawn at each point.
        candidate_points: number of equidistant points with drawn labels.
    """

    alpha: float = Field(default=0.19, gt=0.0, lt=1.0)
    points: PositiveInt = 201
    candidates: PositiveInt = 24
    candidate_points: PositiveInt = 67


@illustrations.register("conformal-bands", BandsOptions)
def conformal_bands(options: BandsOptions, generator: Generator) -> pd.DataFrame:
    """Credible sets, candidate labels drawn from the posterior, and exact conformal sets on a line."""
    history = observe(options, generator)
    predict = conformal_predictor([fit_line(history)], no_shift)
    x, few = grid(options.points, -1.0, 1.0), grid(options.candidate_points, -1.0, 1.0)
    forecast, at_few = predict(x.unsqueeze(-1)), predict(few.unsqueeze(-1))
    eps = torch.randn(len(few), options.candidates, generator=generator, dtype=torch.float64)
    labels = at_few.mean.unsqueeze(-1) + at_few.sd.unsqueeze(-1) * eps
    return table(
        [
            credible_rows("credible", x, forecast, options.alpha),
            rows("candidates", "label", x=few.repeat_interleave(options.candidates), value=labels.reshape(-1)),
            interval_rows("conformal", "set", x.tolist(), forecast.edges(options.alpha)),
            rows("all", "truth", x=x, value=chirp(x)),
            rows("all", "data", x=history.X.squeeze(-1), value=history.Y.squeeze(-1)),
        ]
    )
