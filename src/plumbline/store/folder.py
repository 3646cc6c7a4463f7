"""The trial store: one folder a trial, named by a digest of its spec, code and inputs.

results/store/<key>/
  spec.json          the spec
  log.arrow          all rows so far, until the trial is done
  checkpoint.pt      length of the valid log, and the method's state
  evaluation.pt      a problem's saved state of long evaluations, until the trial is done
  records.parquet    the result; exists only when the trial is done
  timings.parquet    seconds of each round
  snapshots.parquet  snapshots of the model, if requested
  provenance.json    code, versions, machine, wall time
  error.json         the error, if the trial failed

results/store/designs/ contains initial designs that took long to evaluate (`plumbline.trials.design_cache`).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as arrow
from filelock import FileLock

from plumbline.core import files
from plumbline.store import records
from plumbline.store.spec import TrialSpec


class TrialFolder:
    """One trial's place in the store."""

    def __init__(self, root: Path, key: str) -> None:
        self.key = key
        self.path = root / key
        self.records_path = self.path / "records.parquet"
        self.timings_path = self.path / "timings.parquet"
        self.snapshots_path = self.path / "snapshots.parquet"
        self.checkpoint_path = self.path / "checkpoint.pt"
        self.log_path = self.path / "log.arrow"
        self.evaluation_path = self.path / "evaluation.pt"
        self.error_path = self.path / "error.json"
        self.provenance_path = self.path / "provenance.json"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the trial: another process waits for it; the lock of a killed process is released."""
        self.path.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path / ".lock"):
            yield

    @property
    def done(self) -> bool:
        """Whether the trial has ended, successfully or not."""
        return self.records_path.is_file()

    @property
    def failed(self) -> bool:
        """Whether the trial ended with an error."""
        return self.error_path.is_file()

    def forget(self) -> None:
        """Remove the result and the error, so that the trial runs again, from its checkpoint if there is one."""
        for path in (self.records_path, self.error_path):
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove the temporary files of a trial that ended successfully."""
        if self.done and not self.failed:
            for path in (self.checkpoint_path, self.log_path, self.evaluation_path):
                path.unlink(missing_ok=True)

    def write_json(self, path: Path, content: Any) -> None:
        """Write JSON atomically."""
        files.write_text(path, json.dumps(content, indent=1, sort_keys=True) + "\n")

    def provenance(self) -> dict[str, Any]:
        """Return the provenance of a finished trial."""
        return json.loads(self.provenance_path.read_text(encoding="utf-8"))

    def table(self, spec: TrialSpec, points: bool | None = None) -> arrow.Table:
        """Return the records with their timings, under the labels of `spec`.

        Args:
            spec: the trial's spec.
            points: whether x is read too; None if and only if the spec has snapshots, whose figures draw the points.
        """
        if points is None:
            points = spec.diagnostics.snapshots is not None
        rows = records.read_table(self.records_path, records.RECORD.names if points else records.POINTLESS)
        table = records.join_timings(rows, records.read_table(self.timings_path))
        for column, label in (("task", spec.task), ("method", spec.method.label)):
            labels = arrow.repeat(arrow.scalar(label, arrow.string()), len(table))
            table = table.set_column(table.schema.get_field_index(column), column, labels)
        return table
