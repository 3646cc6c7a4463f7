"""The log of a trial: growing tensors of points and observations, with further columns."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as arrow
import torch
from torch import Tensor

from plumbline.store.records import RECORD, SECONDS, TIMING, Row, list_column

CONSTANT = ("key", "task", "method", "seed", "optimum", "ref_point", "roles", "status", "error")
"""Columns of a record that are the same in every row of a trial: no log holds them."""

LOG = arrow.schema(
    [
        *(column for column in RECORD if column.name not in (*CONSTANT, "evaluation")),
        *(TIMING.field(name) for name in SECONDS),
    ]
)
"""Columns of a log. The first row of a step holds its seconds, the others nulls, so that columns can be summed."""

MANY = 256
"""Number of small batches that are merged into one: each has an overhead of kilobytes."""


@dataclass(frozen=True)
class Step:
    """The entry of one round, or of one batch of the initial design, in a log.

    Attributes:
        iteration: 0 for the initial design.
        X: `q x d`.
        Y: `q x m` observations.
        F: `q x m` values without noise.
        columns: diagnostics of the forecasts of Y, by the name of the column: `q`, or `q x levels`.
        events: numerical events of the round.
        notes: notes of the method and the problem; None for the initial design.
        seconds: wall time of the parts: `fit`, `acquire`, `evaluate`.
        snapshot: a snapshot of the model, `points x 7`, or None.
    """

    iteration: int
    X: Tensor
    Y: Tensor
    F: Tensor
    columns: Mapping[str, Tensor] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    notes: dict[str, float] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    snapshot: Tensor | None = None

    def timing(self, round_seconds: float) -> dict[str, float]:
        """Return the seconds of the step by the names of their columns."""
        timing = {name: self.seconds.get(name.removesuffix("_seconds"), 0.0) for name in SECONDS}
        return timing | {"round_seconds": round_seconds}

    def batch(self, timing: Mapping[str, float]) -> arrow.RecordBatch:
        """Return the rows of the step."""
        n = len(self.X)
        lists = {"x": self.X, "y": self.Y, "f": self.F, **self.columns}
        others: dict[str, Any] = {
            "iteration": np.full(n, self.iteration),
            "events": [self.events] * n,
            "notes": [None if self.notes is None else list(self.notes.items())] * n,
            **{name: [seconds] + [None] * (n - 1) for name, seconds in timing.items()},
        }
        arrays = []
        for column in LOG:
            if column.name in lists:
                arrays.append(_array(lists[column.name]))
            elif column.name in others:
                arrays.append(arrow.array(others[column.name], column.type))
            else:
                arrays.append(arrow.nulls(n, column.type))
        return arrow.RecordBatch.from_arrays(arrays, schema=LOG)

    def rows(self, first: int, constants: Row) -> list[Row]:
        """Return the rows of the step for observers; `first` is the index of its first evaluation."""
        columns = {name: values.tolist() for name, values in self.columns.items()}
        columns |= {"x": self.X.tolist(), "y": self.Y.tolist(), "f": self.F.tolist()}
        return [
            {
                **constants,
                "iteration": self.iteration,
                "evaluation": first + i,
                **{name: values[i] for name, values in columns.items()},
                "events": self.events,
                "notes": self.notes or {},
            }
            for i in range(len(self.X))
        ]


def _array(values: Tensor) -> arrow.Array:
    """Return a column of numbers (`n`) or of lists of numbers (`n x k`), without a copy."""
    flat = values.detach().to(torch.float64).contiguous().numpy()
    return arrow.array(flat) if values.ndim == 1 else list_column(flat)


class GrowingTensor:
    """A tensor with appendable rows, in amortised constant time, since its capacity doubles."""

    def __init__(self) -> None:
        self._room = torch.empty(0, 0, dtype=torch.float64)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def rows(self) -> Tensor:
        """The rows so far (`n x k`), a view."""
        return self._room[: self._length]

    def append(self, rows: Tensor) -> None:
        """Append `rows` (`q x k`)."""
        length = self._length + len(rows)
        if length > len(self._room):
            room = torch.empty(max(length, 2 * len(self._room)), rows.shape[1], dtype=torch.float64)
            if self._length:
                room[: self._length] = self.rows
            self._room = room
        self._room[self._length : length] = rows
        self._length = length


class Batches:
    """Batches of rows, which merges many small ones."""

    def __init__(self) -> None:
        self._large: list[arrow.RecordBatch] = []
        self._small: list[arrow.RecordBatch] = []

    def append(self, batch: arrow.RecordBatch) -> None:
        """Append a batch."""
        self._small.append(batch)
        if len(self._small) == MANY:
            self._large.append(arrow.concat_batches(self._small))
            self._small.clear()

    def joined(self) -> list[arrow.RecordBatch]:
        """Return all rows as a list of one batch, or an empty list."""
        if batches := self._large + self._small:
            self._large, self._small = [arrow.concat_batches(batches)], []
        return self._large


class Log:
    """All steps of a trial so far.

    Attributes:
        iteration: the last iteration; 0 after the initial design or a part of it, -1 before.
        snapshots: snapshots of the model so far, as (iteration, `points x 7`).
    """

    def __init__(self) -> None:
        self.iteration = -1
        self.snapshots: list[tuple[int, Tensor]] = []
        self._X = GrowingTensor()
        self._Y = GrowingTensor()
        self._rows = Batches()  # without x, which is in the tensor
        self._new = Batches()  # not yet on disk

    def __len__(self) -> int:
        """Return the number of evaluations."""
        return len(self._X)

    @property
    def X(self) -> Tensor:  # noqa: N802 - the field's name for it
        """All points: `n x d`."""
        return self._X.rows

    @property
    def Y(self) -> Tensor:  # noqa: N802
        """All observations: `n x m`."""
        return self._Y.rows

    @property
    def best(self) -> float:
        """The greatest observation; -inf before any, and with several outcomes."""
        Y = self.Y
        if not len(Y) or Y.shape[1] > 1:
            return -math.inf
        return float(Y.nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf).max())

    def append(self, step: Step, timing: Mapping[str, float]) -> None:
        """Append a step with its seconds."""
        batch = step.batch(timing)
        self._X.append(step.X)
        self._Y.append(step.Y)
        self._keep(batch)
        self._new.append(batch)
        if step.snapshot is not None:
            self.snapshots.append((step.iteration, step.snapshot))

    def extend(self, batch: arrow.RecordBatch) -> None:
        """Append rows that were drained before."""
        for name, tensor in (("x", self._X), ("y", self._Y)):
            values = batch[name].flatten().to_numpy(zero_copy_only=False)
            tensor.append(torch.tensor(values).reshape(len(batch), -1))
        # A copy: columns read together share their memory, so that the points would stay in memory twice.
        self._keep(batch.take(arrow.array(range(len(batch)))))

    def drain(self) -> list[arrow.RecordBatch]:
        """Return the rows appended since the last call, as one batch or none."""
        new, self._new = self._new, Batches()
        return new.joined()

    def columns(self) -> arrow.Table:
        """Return all rows without their x, one array a column."""
        return arrow.Table.from_batches(self._rows.joined(), schema=LOG.remove(LOG.get_field_index("x")))

    def _keep(self, batch: arrow.RecordBatch) -> None:
        self.iteration = batch["iteration"][-1].as_py()
        self._rows.append(batch.drop_columns(["x"]))
