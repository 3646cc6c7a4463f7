"""Illustrations, and the parts of their tables."""

from typing import Any

import numpy as np
import pandas as pd

from plumbline.core.seeding import generator
from plumbline.illustrations.base import illustrations


def build(kind: str, **options: Any) -> pd.DataFrame:
    entry = illustrations[kind]
    return entry.build(entry.options(**options), generator("test", 0, "problem"))


def of(frame: pd.DataFrame, panel: str, series: str) -> pd.DataFrame:
    chosen = frame[(frame["panel"] == panel) & (frame["series"] == series)]
    assert len(chosen), (panel, series)
    return chosen


def in_union(y: np.ndarray, sets: pd.DataFrame) -> np.ndarray:
    return np.any([(y > row.low) & (y < row.high) for row in sets.itertuples()], axis=0)
