"""Seconds of rounds, and of their parts."""

from collections.abc import Callable

import pandas as pd

from plumbline.metrics.registry import METRICS, Metric
from plumbline.store.records import SECONDS


def _seconds(name: str) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda rows: rows[name].where(rows["iteration"] > 0)  # the initial design is nobody's round


for _name in SECONDS:
    _part = _name.removesuffix("_seconds")
    METRICS[_name] = Metric(_name, f"seconds of a round: {_part}", (_name,), "round", _seconds(_name), True, "lower")
