"""The results of a finished trial: records, timings, snapshots and provenance."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as arrow
import pyarrow.compute as compute
import torch
from torch import Tensor

from plumbline.core import files
from plumbline.core.errors import PlumblineError
from plumbline.problems.evaluation import ProblemMetadata
from plumbline.store import records
from plumbline.store.folder import TrialFolder
from plumbline.store.keys import code_outside
from plumbline.store.provenance import provenance
from plumbline.store.records import RECORD, SECONDS, TIMING, Row
from plumbline.store.spec import TrialSpec
from plumbline.trials.diagnostics import PICTURE
from plumbline.trials.log import Log

BLOCK = 1 << 14
"""Number of points in one array of the column x: an array of lists can hold 2^31 numbers."""

SNAPSHOT = arrow.schema(
    [("key", arrow.string()), ("iteration", arrow.int64()), *((name, arrow.float64()) for name in PICTURE)]
)
"""Snapshots of the model before the query of an iteration, on a grid of a one-dimensional problem."""


def constants_of(key: str, spec: TrialSpec, metadata: ProblemMetadata) -> Row:
    """Return the values shared by all rows of a trial."""
    return {
        "key": key,
        "task": spec.task,
        "method": spec.method.label,
        "seed": spec.seed,
        "optimum": metadata.optimum,
        "ref_point": None if metadata.ref_point is None else list(metadata.ref_point),
        "roles": list(metadata.roles) or None,
        "status": "ok",
        "error": None,
    }


def record_table(log: Log, constants: Row) -> arrow.Table:
    """Return the records of all evaluations; the points are a view of the log's."""
    n, columns = len(log), log.columns()
    arrays: dict[str, Any] = {
        **{name: repeated(value, RECORD.field(name).type, n) for name, value in constants.items()},
        **{name: columns[name] for name in columns.column_names},
        "evaluation": np.arange(n),
        "x": points_column(log.X),
    }
    return arrow.table({name: arrays[name] for name in RECORD.names}, schema=RECORD)


def repeated(value: Any, kind: arrow.DataType, n: int) -> arrow.Array:
    """Return a column of one value, `n` times."""
    return arrow.repeat(arrow.scalar(value, kind), n) if n else arrow.nulls(0, kind)  # Arrow repeats no list 0 times


def points_column(X: Tensor) -> arrow.ChunkedArray:
    """Return `n x d` points as a column of lists, without a copy."""
    blocks = [records.list_column(block.numpy()) for block in X.split(BLOCK)] if len(X) else []
    return arrow.chunked_array(blocks, type=RECORD.field("x").type)


def timing_table(log: Log, key: str) -> arrow.Table:
    """Return the seconds of each round."""
    columns = log.columns()
    iterations, places = np.unique(columns["iteration"].to_numpy(), return_inverse=True)
    n = len(iterations)
    arrays = {
        name: np.bincount(places, weights=compute.fill_null(columns[name], 0.0).to_numpy(), minlength=n)
        for name in SECONDS
    }
    return arrow.table({"key": repeated(key, arrow.string(), n), "iteration": iterations, **arrays}, schema=TIMING)


def snapshot_table(log: Log, key: str) -> arrow.Table:
    """Return the snapshots of the model."""
    rows = torch.cat([snapshot for _, snapshot in log.snapshots])
    iterations = [iteration for iteration, snapshot in log.snapshots for _ in snapshot]
    arrays = {name: column.numpy() for name, column in zip(PICTURE, rows.T.contiguous(), strict=True)}
    return arrow.table({"key": [key] * len(rows), "iteration": iterations, **arrays}, schema=SNAPSHOT)


def failure_row(log: Log, initial: int, constants: Row, message: str) -> Row:
    """Return the row with the error of a failed trial, in the first round that it did not finish."""
    iteration = log.iteration + 1 if len(log) >= initial else 0
    lists: Row = {"x": [], "y": [], "f": [], "events": []}
    status = {"iteration": iteration, "evaluation": len(log), "status": "error", "error": message}
    return {**constants, **lists, **status}


def _is_sound(table: arrow.Table, key: str) -> bool:
    """Return whether rows keep the schema; those of a trial that failed because they break it do not."""
    try:
        records.check(table, key)
    except PlumblineError:
        return False
    return True


def write_results(
    folder: TrialFolder,
    spec: TrialSpec,
    log: Log,
    metadata: ProblemMetadata,
    about: Mapping[str, Any],
    error: str | None = None,
) -> None:
    """Write the results of a finished trial; the records come last, because they mark it as finished.

    Args:
        folder: folder of the trial.
        spec: spec of the trial.
        log: log of the trial.
        metadata: metadata of the problem.
        about: further entries of the provenance, such as the device.
        error: error of the trial if it failed, or None.
    """
    constants = constants_of(folder.key, spec, metadata)
    timings = timing_table(log, folder.key)
    records.write_table(folder.timings_path, timings)
    if log.snapshots:
        records.write_table(folder.snapshots_path, snapshot_table(log, folder.key))
    wall = sum(timings["round_seconds"].to_pylist())
    origin = {**provenance(), **code_outside(spec), **about, "spec": spec.model_dump(mode="json"), "wall_seconds": wall}
    origin["status"] = "ok" if error is None else "error"
    folder.write_json(folder.provenance_path, origin)
    table = record_table(log, constants)
    if error is not None:
        failure = records.to_table([failure_row(log, spec.budget.initial.size, constants, error)])
        table = records.concatenate([table, failure]) if _is_sound(table, folder.key) else failure
    records.check(table, folder.key)
    written = {path.name: path for path in (folder.timings_path, folder.provenance_path)}
    if log.snapshots:
        written[folder.snapshots_path.name] = folder.snapshots_path
    with files.atomic(folder.records_path) as part:
        records.encode(part, table)
        folder.write_sums({folder.records_path.name: part, **written})
