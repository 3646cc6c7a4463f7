"""Which methods of the atlas do best where, for the report: by track, and by what an evaluation costs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

DIGITS = 5
"""Of shares, in the page."""

WIDELY = 0.5
"""Share of the tasks that a method has to run on: a rank on a few tasks of one kind says little beside the others."""


def atlas_standings(ranks: pd.DataFrame, legends: Mapping[str, str]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the methods of each track, and of all tasks at each cost of an evaluation, the best first.

    Args:
        ranks: as `analysis.atlas.ranks.ranks` returns them.
        legends: of methods, by name; one without a legend goes by its name.

    Returns:
        `tracks` and `costs`: by name, a record a method: `method`, its `entry`, the number of `tasks`, and the `share`
        of the other methods that it leaves behind, with a 95% interval `low` to `high`, None with one task.
    """
    counted = ranks["cost"] == ""
    return {
        "tracks": {str(name): _methods(rows, legends) for name, rows in ranks[counted].groupby("track", sort=False)},
        "costs": {str(name): _methods(rows, legends) for name, rows in ranks[~counted].groupby("cost", sort=False)},
    }


def _methods(rows: pd.DataFrame, legends: Mapping[str, str]) -> list[dict[str, Any]]:
    found = []
    rows = rows[rows["tasks"] >= WIDELY * rows["tasks"].max()]
    for row in rows.sort_values("beaten", ascending=False, kind="stable").to_dict("records"):
        shares = {"share": row["beaten"], "low": row["low"], "high": row["high"]}
        rounded = {name: None if np.isnan(value) else round(value, DIGITS) for name, value in shares.items()}
        name = str(row["method"])
        found.append({"method": legends.get(name, name), "entry": name, "tasks": int(row["tasks"]), **rounded})
    return found
