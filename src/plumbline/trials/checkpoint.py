"""Checkpoints of running trials: a log that only grows, and a small file with the length of its valid part.

The log is an Arrow stream without an end: its schema, then batches of rows. A save appends the rows since the last one
and then replaces `checkpoint.pt`, which holds the valid length of the log. A kill in between leaves invalid rows: they
are cut off, and the same rounds run again to the same bytes.

`checkpoint.pt` begins with its own checksum and holds that of the log. Neither file is parsed before its checksum is
verified: Arrow may crash on other bytes than it wrote.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import pyarrow as arrow

from plumbline.core import files
from plumbline.core.saved_state import load_state, save_state
from plumbline.store.folder import TrialFolder
from plumbline.trials.log import LOG, Log

VERSION = 3
"""Version of the layout; checkpoints of other versions are not resumed."""

OVER = "the trial starts over"


class Ration:
    """Limits the time spent on saves: one is due when the last took at most `share` of the trial's time since.

    Args:
        share: share of the time; infinite to save in every round.
        clock: seconds.
    """

    def __init__(self, share: float = 0.02, clock: Callable[[], float] = perf_counter) -> None:
        self.share = share
        self.clock = clock
        self._cost = self._since = 0.0

    def due(self, seconds: float) -> bool:
        """Whether a save is due after a step that took the trial, but not others in lockstep with it, `seconds`."""
        self._since += seconds
        return self._cost <= self.share * self._since

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Measure the save in the block."""
        started = self.clock()
        yield
        self._cost, self._since = self.clock() - started, 0.0


class Checkpoint:
    """The checkpoint of one trial."""

    def __init__(self, folder: TrialFolder, ration: Ration) -> None:
        self.folder = folder
        self.ration = ration
        self._length = 0
        self._digest = hashlib.sha256()

    def restore(self) -> tuple[Log, dict[str, Any]]:
        """Return the log and the method's state of the last save; empty ones if there is none.

        A checkpoint or log that is damaged, or another trial's, is set aside with a warning of one line, and the trial
        starts over.

        Raises:
            MemoryError: the log is too large for this machine.
        """
        path, log_path = self.folder.checkpoint_path, self.folder.log_path
        if not path.is_file():
            return Log(), {}
        with files.reading(path, OVER, log_path):
            content = load_state(path)
            version = content.get("version") if isinstance(content, dict) else None
            if version != VERSION:
                raise ValueError(f"layout {version or 1}, not {VERSION}")
            if content["key"] != self.folder.key:
                raise ValueError(f"it is of trial {content['key']}, not of this one")
            with files.reading(log_path, OVER, path):
                log, digest = self._read(content["length"], content["digest"])
                log.snapshots = content["snapshots"]
                self._length, self._digest = content["length"], digest
                return log, content["method"]
        return Log(), {}

    def save(self, log: Log, method: dict[str, Any]) -> None:
        """Append the new rows of `log` to the log on disk, then update its valid length and the method's state."""
        with self.ration.saving():
            length, digest = self._append(log.drain())
            content = {
                "version": VERSION,
                "key": self.folder.key,
                "length": length,
                "digest": digest.hexdigest(),
                "snapshots": log.snapshots,
                "method": method,
            }
            save_state(self.folder.checkpoint_path, content)
            self._length, self._digest = length, digest

    def _read(self, length: int, expected: str) -> tuple[Log, "hashlib._Hash"]:
        """Return the log of the first `length` bytes and their digest, and cut the file off there."""
        path, log = self.folder.log_path, Log()
        if path.stat().st_size < length:
            raise ValueError(f"it has {path.stat().st_size} of {length} bytes")
        with path.open("r+b") as file:
            file.truncate(length)
            digest = hashlib.file_digest(file, "sha256")
        if digest.hexdigest() != expected:
            raise ValueError("its checksum is not the one in the checkpoint")
        with arrow.OSFile(str(path)) as source, arrow.ipc.open_stream(source) as stream:
            for batch in stream:
                log.extend(batch)
        return log, digest

    def _append(self, batches: Sequence[arrow.RecordBatch]) -> tuple[int, "hashlib._Hash"]:
        """Write `batches` after the valid bytes, and return the new valid length and its digest."""
        path, digest = self.folder.log_path, self._digest.copy()
        path.touch()
        with path.open("r+b") as file:
            file.truncate(self._length)
            file.seek(self._length)
            for part in [LOG] * (self._length == 0) + list(batches):
                buffer = part.serialize()
                file.write(buffer)
                digest.update(buffer)
            file.flush()
            os.fsync(file.fileno())  # rows must reach the disk before their length does, even in a crash
            return file.tell(), digest
