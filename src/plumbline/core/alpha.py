"""Miscoverage levels, fixed or shrinking with the number of observations."""

import math
from typing import Annotated, Literal

from pydantic import Field

Alpha = Annotated[float, Field(gt=0.0, lt=1.0)] | Literal["1/sqrt(n)", "max(.05, 1/sqrt(n))"]


def alpha_at(alpha: Alpha, n: int) -> float:
    """Return the miscoverage level after `n` observations.

    The schedule of CBO is `max(.05, 1/sqrt(n))` (appendix D), whose floor binds from 400 observations on. Below
    four observations they are held at 1/2, where a level of 1 would make every set empty.
    """
    if isinstance(alpha, float):
        return alpha
    floor = 0.05 if alpha.startswith("max") else 0.0
    return min(0.5, max(floor, 1.0 / math.sqrt(n)))
