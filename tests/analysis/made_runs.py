"""Runs made up for tests of claims."""

from typing import Any

import made_evidence as made
import pandas as pd

from plumbline.analysis.evidence.runs import COLUMNS, Runs
from plumbline.study.claims import ClaimTest


def claim_test(**changes: Any) -> ClaimTest:
    return ClaimTest.model_validate({**made.TEST, **changes})


Numbers = dict[tuple[str, str], list[float]]
"""Last values, a seed each, by task and method."""


def runs(numbers: Numbers, metric: str = "regret", **columns: Any) -> Runs:
    """Return runs with these last values, half of which are their means."""
    rows = [
        dict(zip(COLUMNS, (task, method, metric, seed, last, last / 2, last / 4, 6, 6, 8), strict=True)) | columns
        for (task, method), values in numbers.items()
        for seed, last in enumerate(values)
    ]
    return Runs(pd.DataFrame(rows, columns=COLUMNS))
