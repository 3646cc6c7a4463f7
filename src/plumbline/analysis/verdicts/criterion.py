"""What was tested: the columns of the table of claims that say it, and the sentence that is made of them."""

import json
import math
from collections.abc import Mapping
from typing import Any

from plumbline.study.claims import ClaimTest

CRITERION = [
    "statistic",
    "location",
    "of",
    "metric",
    "method",
    "after",
    "baseline",
    "baseline_task",
    "tasks",
    "options",
    "above",
    "below",
]
"""Columns that say what was tested, as `plumbline.study.claims.Criterion` explains.

Spaces separate `tasks`; `options` are JSON. The claim expects the statistic to be above `above` and below `below`, of
which one is missing unless it expects a range. Words that a test does not need are empty.
"""


def criterion(test: ClaimTest) -> dict[str, Any]:
    """Return the columns of a test."""
    above, below = test.range or (
        (test.threshold, math.nan) if test.direction == "greater" else (math.nan, test.threshold)
    )
    return {
        "statistic": test.statistic,
        "location": test.location,
        "of": test.of,
        "metric": test.metric,
        "method": test.method,
        "after": math.nan if test.after is None else test.after,
        "baseline": test.baseline or "",
        "baseline_task": test.baseline_task or "",
        "tasks": " ".join(test.tasks),
        "options": json.dumps(test.options) if test.options else "",
        "above": above,
        "below": below,
    }


def describe(row: Mapping[Any, Any]) -> str:
    """Return what was tested in a sentence; no two tests of a claim have the same.

    Args:
        row: of the table of claims, or of `criterion`.
    """
    against = f" - {row['baseline']}" if row["baseline"] else ""
    against += f" (of {row['baseline_task']})" if row["baseline_task"] else ""
    options = json.loads(row["options"]) if row["options"] else {}
    besides = "".join(f", {name} {value}" for name, value in options.items())
    location = "median " if row["location"] == "median" else ""
    number = "final" if row["of"] == "last" else row["of"]
    shortened = "" if math.isnan(row["after"]) else f", after {row['after']:.3g} of its rounds"
    measured = f"{location}{row['statistic']} of {number} {row['metric']}, {row['method']}{shortened}{against}"
    return f"{measured} on {', '.join(row['tasks'].split())}{besides}: {expected(row)}"


def expected(row: Mapping[Any, Any]) -> str:
    """Return the values of the statistic that the claim expects, in words."""
    above, below = row["above"], row["below"]
    if math.isnan(below):
        return f"greater than {above:g}"
    return f"less than {below:g}" if math.isnan(above) else f"within {above:g} and {below:g}"
