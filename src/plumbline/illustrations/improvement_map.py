"""Expected improvement as a trade-off between quality and uncertainty."""

import pandas as pd
import torch
from torch import Generator

from plumbline.acquisition.analytic import expected_improvement
from plumbline.core.options import Options
from plumbline.illustrations.base import grid, illustrations, rows, table

POINTS = 81
"""Points of the grid along each axis."""

REACH, SPREAD = 2.0, 2.0
"""The expected quality runs from `-REACH` to `REACH`, the standard deviation up to `SPREAD`."""


@illustrations.register("improvement-map", Options)
def improvement_map(_: Options, generator: Generator) -> pd.DataFrame:
    """Expected improvement as a function of the expected quality `Delta = mean - best` and the standard deviation."""
    quality = grid(POINTS, -REACH, REACH)
    deviation = SPREAD * (torch.arange(POINTS, dtype=torch.float64) + 1) / POINTS
    at = torch.cartesian_prod(quality, deviation)
    value = expected_improvement(torch.zeros((), dtype=torch.float64))(at[:, 0], at[:, 1])[0]
    return table([rows("improvement", "surface", x=at[:, 0], x2=at[:, 1], value=value)])
