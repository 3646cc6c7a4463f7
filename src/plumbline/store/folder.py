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
  SHA256SUMS         checksums of the results, as `sha256sum --check` reads them

results/store/designs/ contains initial designs that took long to evaluate (`plumbline.trials.design_cache`).
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as arrow

from plumbline.core import files
from plumbline.core.errors import PlumblineError
from plumbline.core.locks import locked
from plumbline.core.places import STORE, own
from plumbline.store import records
from plumbline.store.spec import TrialSpec

AGAIN = "move the trial's folder away and run it again"
SEE_ERROR = "see error.json in the trial's folder"
"""Where the traceback is, in the reason of a failure; who reads it from the folder is told the path instead."""


def failures_command(store: Path) -> str:
    """Return the command that lists the failures in a store: it names one that is not the workspace's own."""
    usual = store.resolve() == own(STORE).resolve()
    return "plumbline failures" if usual else f"plumbline failures --store {shlex.quote(str(store))}"


class TrialFolder:
    """One trial's place in the store."""

    def __init__(self, root: Path, key: str) -> None:
        self.key, self.root = key, root
        self.path = root / key
        self.records_path = self.path / "records.parquet"
        self.timings_path = self.path / "timings.parquet"
        self.snapshots_path = self.path / "snapshots.parquet"
        self.checkpoint_path = self.path / "checkpoint.pt"
        self.log_path = self.path / "log.arrow"
        self.evaluation_path = self.path / "evaluation.pt"
        self.error_path = self.path / "error.json"
        self.provenance_path = self.path / "provenance.json"
        self.sums_path = self.path / "SHA256SUMS"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the trial: another process waits for it, and says so; the lock of a killed process is released."""
        with locked(self.path / ".lock", "runs this trial"):
            yield

    @property
    def done(self) -> bool:
        """Whether the trial has ended, successfully or not."""
        return self.records_path.is_file()

    @property
    def failed(self) -> bool:
        """Whether the trial ended with an error, as its records say; before there are any, whether error.json is there.

        Raises:
            PlumblineError: the records cannot be read.
        """
        return self._recorded_error() is not None if self.done else self.error_path.is_file()

    def reason(self) -> str:
        """Why a failed trial failed, in the words of its records; before there are any, in those of error.json.

        Raises:
            PlumblineError: neither can be read.
        """
        recorded = self._recorded_error() if self.done else None
        reason = recorded or str(files.read_json(self.error_path, ["error"], self.cleared_by)["error"])
        return reason.removesuffix(f" ({SEE_ERROR})").replace(f"; {SEE_ERROR}", "")

    @property
    def cleared_by(self) -> str:
        """The command by which the trial, if it failed, may run again."""
        return f"`{failures_command(self.root)} --forget` clears it"

    def _recorded_error(self) -> str | None:
        """The error in the records, None if there is none."""
        table = records.read_table(self.records_path, ["status", "error"])
        last = table.slice(max(len(table) - 1, 0)).to_pylist()
        return last[0]["error"] or "no reason is recorded" if last and last[0]["status"] == "error" else None

    def sound(self) -> bool:
        """Whether the trial has ended and its results are whole, and its own.

        Damaged results are set aside, with a warning of one line; the trial then counts as not done.
        """
        if not self.done:
            return False
        fault = self.fault()
        if fault is not None:
            path, reason = fault
            besides = () if path == self.records_path else (self.records_path,)
            files.warn_damaged(path, reason, "the trial runs again", *besides)
        return fault is None

    def fault(self) -> tuple[Path, str] | None:
        """The first result of a finished trial that is damaged, or another trial's, and why; None if all is well.

        Results without checksums, of an older version, are read to see whether they can be.
        """
        if (changed := self.changed()) is not None:
            return changed
        sums = self._sums()
        for path in (self.records_path, self.timings_path):
            try:
                keys = records.read_table(path, ["key"] if sums else None)["key"].unique().to_pylist()
            except (PlumblineError, KeyError) as error:
                return path, str(error)
            if foreign := [key for key in keys if key != self.key]:
                return path, f"it is of trial {foreign[0]}, not of this one"
        return None

    def changed(self) -> tuple[Path, str] | None:
        """The first result of a finished trial that is missing or has another checksum, and why; None if all is well.

        Cheaper than `fault`: it reads the bytes alone.
        """
        sums = self._sums()
        for path in (self.records_path, self.timings_path):
            if not path.is_file():
                return path, "it is missing"
            if sums is not None and sums.get(path.name) != files.digest_of(path):
                return path, f"its checksum is not the one in {self.sums_path.name}"
        return None

    def _sums(self) -> dict[str, str] | None:
        """The checksums by name of file; None where an older version wrote the results."""
        if not self.sums_path.is_file():
            return None
        lines = (line.split() for line in self.sums_path.read_text(encoding="utf-8", errors="replace").splitlines())
        return {line[1]: line[0] for line in lines if len(line) == 2}

    def write_sums(self, written: Mapping[str, Path]) -> None:
        """Write the checksums of results, by their names; each may still lie at another path."""
        lines = [f"{files.digest_of(path)}  {name}\n" for name, path in written.items()]
        files.write_text(self.sums_path, "".join(lines))

    def forget(self) -> None:
        """Remove the result and the error, so that the trial runs again, from its checkpoint if there is one."""
        # The records first: after a kill in between, the trial still counts as failed.
        for path in (self.records_path, self.error_path):
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove parts of files that killed saves left, and the checkpoint of a trial that ended successfully.

        The trial must be locked.
        """
        for part in files.parts_in(self.path):
            part.unlink(missing_ok=True)
        if self.done and not self.failed:
            for path in (self.checkpoint_path, self.log_path, self.evaluation_path):
                path.unlink(missing_ok=True)

    def write_json(self, path: Path, content: Any) -> None:
        """Write JSON atomically."""
        files.write_text(path, json.dumps(content, indent=1, sort_keys=True) + "\n")

    def provenance(self) -> dict[str, Any]:
        """Return the provenance of a finished trial.

        Raises:
            PlumblineError: it is missing or damaged.
        """
        facts = files.read_json(self.provenance_path, remedy=AGAIN)
        self._verify(self.provenance_path)
        return facts

    def snapshots(self) -> arrow.Table | None:
        """Return the snapshots of the model, None if there are none.

        Raises:
            PlumblineError: they are damaged.
        """
        if not self.snapshots_path.is_file():
            return None
        self._verify(self.snapshots_path)
        return records.read_table(self.snapshots_path)

    def _verify(self, path: Path) -> None:
        """Raise PlumblineError if there is a checksum of `path`, and it is not that of its bytes."""
        known = (self._sums() or {}).get(path.name)
        if known not in (None, files.digest_of(path)):
            raise PlumblineError(f"{path} is damaged, its checksum is not the one in {self.sums_path.name}: {AGAIN}")

    def table(self, spec: TrialSpec, points: bool | None = None) -> arrow.Table:
        """Return the records with their timings, under the labels of `spec`.

        Args:
            spec: the trial's spec.
            points: whether x is read too; None if and only if the spec has snapshots, whose figures draw the points.

        Raises:
            PlumblineError: a result is damaged, or another trial's.
        """
        if (fault := self.fault()) is not None:
            raise PlumblineError(f"{fault[0]} cannot be read ({fault[1]}): {AGAIN}")
        if points is None:
            points = spec.diagnostics.snapshots is not None
        rows = records.read_table(self.records_path, records.RECORD.names if points else records.POINTLESS)
        table = records.join_timings(rows, records.read_table(self.timings_path))
        for column, label in (("task", spec.task), ("method", spec.method.label)):
            labels = arrow.repeat(arrow.scalar(label, arrow.string()), len(table))
            table = table.set_column(table.schema.get_field_index(column), column, labels)
        return table
