"""Records in memory: columns of numbers, never a Python object a row."""

import numpy as np
import pandas as pd
import pyarrow as arrow
import pyarrow.compute as compute
from numpy.typing import NDArray

Array = NDArray[np.float64]


def frame_of(table: arrow.Table) -> pd.DataFrame:
    """Return a table as a frame; lists of numbers with one entry at most become numbers, NaN where there is none.

    Longer lists and maps stay in Arrow's own memory: `entries` and `lookup` read them.
    """
    return pd.DataFrame({name: _column(table[name]) for name in table.column_names})


def _column(values: arrow.ChunkedArray) -> pd.Series:
    kind = values.type
    if not (arrow.types.is_list(kind) or arrow.types.is_map(kind)):
        return values.to_pandas()
    series = pd.Series(pd.arrays.ArrowExtensionArray(values))
    if arrow.types.is_list(kind) and arrow.types.is_floating(kind.value_type):
        found = entries(series)
        return pd.Series(found[:, 0]) if found.shape[1] == 1 else series
    return series


def _arrow(column: pd.Series) -> arrow.Array:
    values = arrow.array(column.array)
    return values.combine_chunks() if isinstance(values, arrow.ChunkedArray) else values


def entries(column: pd.Series) -> Array:
    """Return a column of numbers or of lists of them as `n x m`, `m` at least 1; NaN where a list is null or short."""
    if not isinstance(column.dtype, pd.ArrowDtype):
        return column.to_numpy(dtype=np.float64)[:, None]
    lists = _arrow(column)
    lengths = compute.fill_null(compute.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    flat = compute.list_flatten(lists).to_numpy(zero_copy_only=False)
    width = int(lengths.max(initial=1))
    if (lengths == width).all():
        return flat.reshape(-1, width)
    found = np.full((len(lengths), width), np.nan)
    found[np.arange(width) < lengths[:, None]] = flat
    return found


def lookup(column: pd.Series, key: str) -> Array:
    """Return the values under `key` in a column of maps, NaN where there are none."""
    found = compute.map_lookup(_arrow(column), query_key=key, occurrence="first")
    return found.to_numpy(zero_copy_only=False).astype(np.float64)


def keys(column: pd.Series) -> list[str]:
    """Return the keys of a column of maps."""
    return sorted(compute.unique(_arrow(column).keys).to_pylist())
