"""The registry of illustrations, and their tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.registry.registry import Registry

illustrations = Registry("illustration", "plumbline.illustrations")
"""Functions of (options, generator) that return rows of `COLUMNS`."""

COLUMNS = ("panel", "series", "x", "x2", "value", "low", "high")
"""Columns of every table: panel and series of a row, its coordinates, and its value or interval.

Unused entries are missing; an interval's end may be infinite.
"""


def rows(panel: str, series: str, **columns: Any) -> pd.DataFrame:
    """Return the rows of a series; `columns` are numbers, or sequences or tensors of one length."""
    values = {
        name: column.detach().numpy() if isinstance(column, Tensor) else column for name, column in columns.items()
    }
    length = max((len(column) for column in values.values() if hasattr(column, "__len__")), default=1)
    frame = pd.DataFrame({"panel": panel, "series": series, **values}, index=range(length))
    return frame.reindex(columns=list(COLUMNS)).astype(dict.fromkeys(COLUMNS[2:], float))


def table(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the table of all series."""
    return pd.concat(parts, ignore_index=True)


def interval_rows(
    panel: str, series: str, x: Sequence[float], sets: Sequence[Sequence[tuple[float, float]]]
) -> pd.DataFrame:
    """Return a row per interval of each set, with the set's `x`; an empty set has no row."""
    flat = [(at, low, high) for at, intervals in zip(x, sets, strict=True) for low, high in intervals]
    columns: Mapping[str, Any] = {name: [row[i] for row in flat] for i, name in enumerate(("x", "low", "high"))}
    return rows(panel, series, **columns)


def credible_rows(panel: str, x: Tensor, forecast: GaussianPredictive, alpha: float) -> pd.DataFrame:
    """Return the credible intervals of level `1 - alpha` of observations at `x`, `n`, with their means as values."""
    half = forecast.half_width(alpha)
    return rows(panel, "credible", x=x, value=forecast.mean, low=forecast.mean - half, high=forecast.mean + half)


def grid(points: int, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Return equidistant points, both ends included."""
    return torch.linspace(low, high, points, dtype=torch.float64)
