"""The values of an estimate that support a claim, in words."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd


def supports(row: Mapping[Any, Any]) -> str:
    """The values of a statistic that support the claim.

    Args:
        row: of the table of claims, or of `plumbline.analysis.verdicts.criterion`.
    """
    above, below = row["above"], row["below"]
    if math.isnan(below):
        return f"above {above:g}"
    return f"below {below:g}" if math.isnan(above) else f"{above:g} to {below:g}"


def supports_if(tests: pd.DataFrame) -> str:
    """Return which values of an estimate support the claim, from rows of parts that measure the same quantity."""
    values = dict.fromkeys(map(supports, tests.to_dict("records")))
    words = [one if one.startswith(("above", "below")) else f"within {one}" for one in values]
    return f"supports if {' or '.join(words)}"
