"""The one schema of a result row; reading and writing it.

A row is one evaluation. The computed columns (`RECORD`) are identical to the byte however often a trial is interrupted;
the timings (`TIMING`) are not, and have a file of their own until both are joined for analysis.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as arrow
import pyarrow.compute as compute
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from plumbline.core import files
from plumbline.core.errors import PlumblineError

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

_NUMBERS = arrow.list_(arrow.float64())

RECORD = arrow.schema(
    [
        # The trial.
        ("key", arrow.string()),
        ("task", arrow.string()),
        ("method", arrow.string()),
        ("seed", arrow.int64()),
        # The evaluation: iteration 0 is the initial design.
        ("iteration", arrow.int64()),
        ("evaluation", arrow.int64()),
        # The point x, noisy y and noise-free f, one entry an outcome, both to be maximised. y is NaN for outcomes that
        # were not requested.
        ("x", _NUMBERS),
        ("y", _NUMBERS),
        ("f", _NUMBERS),
        # Metadata of the problem, the same in each row of a trial: the greatest value of one outcome (NaN if unknown),
        # the reference point of several objectives (null for one), and the role of each outcome.
        ("optimum", arrow.float64()),
        ("ref_point", _NUMBERS),
        ("roles", arrow.list_(arrow.string())),
        # The model's forecast of y before its observation; null for the initial design and for methods without a model.
        # With several outcomes, nll is that of the joint density, and the others are null.
        ("predicted_mean", arrow.float64()),
        ("predicted_sd", arrow.float64()),
        ("pit", arrow.float64()),
        ("nll", arrow.float64()),
        ("crps", arrow.float64()),
        # The model's sets, one entry a level: miscoverage level, coverage of y and of f, length, coverage on the
        # holdout and at the ends of the search's climbs, lengths on the holdout and at the optimum. Near and far widths
        # are in credible intervals, on the parts of the holdout near to an observation and far from all.
        ("alpha", _NUMBERS),
        ("covered", _NUMBERS),
        ("f_covered", _NUMBERS),
        ("width", _NUMBERS),
        ("holdout_coverage", _NUMBERS),
        ("end_coverage", _NUMBERS),
        ("holdout_width", _NUMBERS),
        ("optimum_width", _NUMBERS),
        ("near_width", _NUMBERS),
        ("far_width", _NUMBERS),
        # Numerical events of the round (jitter added, fit retried), and notes of the method, or of the problem as
        # `problem.*`.
        ("events", arrow.list_(arrow.string())),
        ("notes", arrow.map_(arrow.string(), arrow.float64())),
        # "ok", or "error" for the last row of a trial that failed, with the reason.
        ("status", arrow.string()),
        ("error", arrow.string()),
    ]
)

ROWS = 1 << 14
"""Number of rows that are encoded in memory at once."""

POINTLESS = [name for name in RECORD.names if name != "x"]
"""All columns but the points, which are the bulk of a file and rarely read."""

TIMING = arrow.schema(
    [
        ("key", arrow.string()),
        ("iteration", arrow.int64()),
        ("fit_seconds", arrow.float64()),
        ("acquire_seconds", arrow.float64()),
        ("evaluate_seconds", arrow.float64()),
        ("round_seconds", arrow.float64()),
    ]
)

SECONDS = [name for name in TIMING.names if name.endswith("_seconds")]


class Rule(NamedTuple):
    """A condition on every value of a column, or on every number in a column of lists.

    Attributes:
        allowed: maps values to whether they are allowed; null to null.
        words: description of the allowed values.
        nullable: whether null is allowed.
    """

    allowed: Callable[[arrow.Array], arrow.Array]
    words: str
    nullable: bool = False


def _within(values: arrow.Array, low: float, high: float) -> arrow.Array:
    inside = compute.and_(compute.greater_equal(values, low), compute.less_equal(values, high))
    return compute.or_(inside, compute.is_nan(values))


_COUNT = Rule(lambda values: compute.greater_equal(values, 0), "at least 0")
_OUTCOME = Rule(lambda values: compute.invert(compute.is_inf(values)), "finite or NaN", nullable=True)

RULES = {
    "key": Rule(lambda values: compute.match_substring_regex(values, "^[0-9a-f]{16}$"), "16 hex digits"),
    "seed": _COUNT,
    "iteration": _COUNT,
    "evaluation": _COUNT,
    "x": Rule(compute.is_finite, "finite"),
    "y": _OUTCOME,
    "f": _OUTCOME,
    "predicted_sd": Rule(lambda values: _within(values, 0.0, math.inf), "at least 0", nullable=True),
    "pit": Rule(lambda values: _within(values, 0.0, 1.0), "between 0 and 1", nullable=True),
    "status": Rule(lambda values: compute.is_in(values, arrow.array(["ok", "error"])), "ok or error"),
}
"""Rules besides the types of the schema."""


def check(records: arrow.Table, source: str | Path) -> None:
    """Raise PlumblineError naming `source`, the column and the value where rows violate a rule."""
    for name, rule in RULES.items():
        if name not in records.column_names:
            if name == "x":  # most files have no points
                continue
            raise PlumblineError(f"{source}: records break the schema: there is no column {name!r}")
        try:
            wrong = _first_wrong(records[name], rule)
        except arrow.ArrowException as error:
            raise PlumblineError(
                f"{source}: records break the schema: column {name!r}: {' '.join(str(error).split())[:300]}"
            ) from error
        if wrong is not None:
            raise PlumblineError(
                f"{source}: records break the schema: column {name!r} holds {wrong.as_py()}, not {rule.words}"
            )


def _first_wrong(column: arrow.ChunkedArray, rule: Rule) -> arrow.Scalar | None:
    """Return the first value that a rule does not allow."""
    values = compute.list_flatten(column) if arrow.types.is_list(column.type) else column
    fine = rule.allowed(values).fill_null(rule.nullable)
    return None if compute.all(fine, min_count=0).as_py() else values.filter(compute.invert(fine))[0]


def list_column(values: NDArray[np.float64]) -> arrow.ListArray:
    """Return the rows of `values` (`n x k`, contiguous) as a column of lists, without a copy."""
    n, k = values.shape
    return arrow.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32) * np.int32(k), values.reshape(-1))


def to_table(rows: Iterable[Row]) -> arrow.Table:
    """Return rows as a checked table; missing fields are null.

    Raises:
        PlumblineError: values that the schema does not allow.
    """
    table = arrow.Table.from_pylist(list(rows), schema=RECORD)
    check(table, "these rows")
    return table


def write_table(path: Path, table: arrow.Table, metadata: Mapping[str, str] | None = None, small: bool = False) -> None:
    """Write a table to Parquet atomically, with `metadata` in its schema, and if `small` as a small file."""
    if metadata:
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), **metadata})
    with files.atomic(path) as part:
        (encode_small if small else encode)(part, table)


def encode(path: Path, table: arrow.Table) -> None:
    """Write a table to Parquet, with a checksum of each page, which `read_table` verifies."""
    parquet.write_table(table, path, compression="zstd", row_group_size=ROWS, write_page_checksum=True)


def encode_small(path: Path, table: arrow.Table) -> None:
    """Write a table as `encode` does, a fourth smaller and slower: for files that are kept under version control.

    Measured floats seldom repeat, so that a dictionary of them is larger than their bytes in streams.
    """
    floats = [field.name for field in table.schema if arrow.types.is_floating(field.type)]
    parquet.write_table(
        table,
        path,
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name in table.column_names if name not in floats],
        use_byte_stream_split=floats or False,
        write_page_checksum=True,
    )


def write_frame(
    path: Path, frame: "pd.DataFrame", metadata: Mapping[str, str] | None = None, small: bool = False
) -> None:
    """Write a data frame as `write_table` does, without its index."""
    write_table(path, arrow.Table.from_pandas(frame, preserve_index=False), metadata, small)


RUN_AGAIN = "delete it and run again"


def read_table(
    path: Path, columns: Sequence[str] | None = None, as_dictionary: Sequence[str] = (), remedy: str = RUN_AGAIN
) -> arrow.Table:
    """Read a Parquet file, or some columns of it; columns of words `as_dictionary` are read as dictionaries.

    Raises:
        PlumblineError: missing, truncated or corrupt file, or one that lacks a column, with the `remedy`.
        MemoryError: the file is too large for this machine, but not damaged.
        OSError: the file is there, and the machine cannot read it.
    """
    chosen = None if columns is None else list(columns)
    if missing := set(chosen or ()) - set(read_names(path, remedy) if chosen else ()):
        raise PlumblineError(f"{path} has no column {min(missing)!r}: {remedy}")
    how = {"read_dictionary": list(as_dictionary), "page_checksum_verification": True}
    return _read(path, partial(parquet.read_table, columns=chosen, **how), remedy)


def read_names(path: Path, remedy: str = RUN_AGAIN) -> list[str]:
    """Return the names of the columns of a Parquet file; raises as `read_table` does."""
    return _read(path, parquet.read_schema, remedy).names


def _read(path: Path, read: Callable[[Path], Any], remedy: str) -> Any:
    try:
        found = read(path)
        _names(found)  # only here are they decoded
        return found
    except FileNotFoundError as error:
        raise PlumblineError(f"no records at {path}: run the trials first") from error
    except (arrow.ArrowException, OSError, ValueError) as error:
        if files.machine_failed(error):
            raise
        reason = " ".join(str(error).split())
        raise PlumblineError(f"{path} is corrupt ({reason}): {remedy}") from error


def _names(found: arrow.Table | arrow.Schema) -> list[str]:
    return (found.schema if isinstance(found, arrow.Table) else found).names


def join_timings(records: arrow.Table, timings: arrow.Table) -> arrow.Table:
    """Return the records of one trial with the seconds of their rounds; nulls where a round has none."""
    rows = compute.index_in(records["iteration"], value_set=timings["iteration"].combine_chunks())
    for name in SECONDS:
        records = records.append_column(name, timings[name].take(rows))
    return records


def concatenate(tables: Sequence[arrow.Table]) -> arrow.Table:
    """Return all rows of `tables` in their order."""
    return arrow.concat_tables(tables, promote_options="default")
