"""How well methods search for the maximum of their acquisition functions."""

import numpy as np
import pandas as pd

from plumbline.metrics.frames import lookup
from plumbline.metrics.registry import enter, queries, running_mean

HALF = 0.5
"""Share of the utility that another search finds, below which a search is said to fail."""


@enter("running", "notes", better="lower", best=0.0)
def failed_searches(rows: pd.DataFrame) -> pd.Series:
    """Return the share of rounds so far whose search found less than half of the utility that another search found.

    Of methods within `audited-search`, with utilities that are not negative, such as EI: of others it is not defined.
    """
    asked = queries(rows)
    found, best = (lookup(asked["notes"], name) for name in ("utility_of_search", "utility_of_audit"))
    failed = np.where((found >= 0) & (best >= 0), found < HALF * best, np.nan)
    return running_mean(pd.Series(failed, index=asked.index), asked)
