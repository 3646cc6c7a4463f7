"""Whether trials of a task have the same initial designs.

Methods that share a task and a seed do. Where the values differ, the trials read other data, another trained model or
another version of a library, and are not of one task.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

TOLERANCE = 1e-6
"""Relative difference of two values that other processors may bring; near zero a thousandth of it, absolute."""


class Apart(NamedTuple):
    """Two trials of a seed whose initial designs have other best values.

    Attributes:
        seed: of both.
        method, value: of the one.
        other, other_value: of the other.
    """

    seed: int
    method: str
    value: float
    other: str
    other_value: float


def first_apart(rounds: pd.DataFrame) -> Apart | None:
    """Return the first two trials of a seed whose initial designs have other best values; None where all agree.

    Args:
        rounds: of one task, with `method`, `seed`, `round` and `best`.
    """
    starts = rounds.loc[rounds["round"] == 0, ["seed", "method", "best"]].astype({"method": str})
    for seed, of_seed in starts.groupby("seed"):
        values = of_seed["best"].to_numpy(dtype=float)
        apart = ~np.isclose(values, values[0], rtol=TOLERANCE, atol=TOLERANCE / 1000, equal_nan=True)
        if apart.any():
            one, other = of_seed.iloc[0], of_seed.iloc[int(apart.argmax())]
            return Apart(int(str(seed)), one["method"], float(one["best"]), other["method"], float(other["best"]))
    return None
