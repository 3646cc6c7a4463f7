"""Expected improvement as a trade-off between quality and uncertainty."""

import pandas as pd
import torch
from pydantic import Field, PositiveFloat
from torch import Generator

from plumbline.acquisition.analytic import expected_improvement
from plumbline.core.options import Options
from plumbline.illustrations.base import grid, illustrations, rows, table


class ImprovementMapOptions(Options):
    """Options of the illustration.

    Attributes:
        points: number of points of the grid along each axis.
        reach: the expected quality ranges from `-reach` to `reach`.
        spread: the greatest standard deviation.
    """

    points: int = Field(default=81, ge=2)
    reach: PositiveFloat = 2.0
    spread: PositiveFloat = 2.0


@illustrations.register("improvement-map", ImprovementMapOptions)
def improvement_map(options: ImprovementMapOptions, generator: Generator) -> pd.DataFrame:
    """Expected improvement as a function of the expected quality `Delta = mean - best` and the standard deviation."""
    quality = grid(options.points, -options.reach, options.reach)
    deviation = options.spread * (torch.arange(options.points, dtype=torch.float64) + 1) / options.points
    at = torch.cartesian_prod(quality, deviation)
    value, _, _ = expected_improvement(torch.zeros((), dtype=torch.float64))(at[:, 0], at[:, 1])
    return table([rows("improvement", "surface", x=at[:, 0], x2=at[:, 1], value=value)])
