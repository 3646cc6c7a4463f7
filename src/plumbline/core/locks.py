"""Locks between processes; who has to wait for one is told for whom."""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

PATIENCE = 1.0
"""Seconds before it is said what a lock waits for."""


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock at `path`; who has to wait for it says so, once, on standard error.

    The lock of a killed process is released by the operating system.

    Args:
        path: of the lock. While it is held, a file beside it says by whom.
        what: what its holder does, in words: "runs this trial".
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock, note = FileLock(path), path.with_name(f"{path.name}.owner")
    try:
        lock.acquire(timeout=PATIENCE)
    except Timeout:
        print(f"plumbline: waiting for {_owner(note)}, which {what} ({path})", file=sys.stderr, flush=True)
        lock.acquire()
    try:
        with suppress(OSError):  # it is for people alone
            note.write_text(f"process {os.getpid()} on host {platform.node()}", encoding="utf-8")
        yield
    finally:
        with suppress(OSError):
            note.unlink(missing_ok=True)
        lock.release()


def locked_folder(folder: Path, what: str) -> AbstractContextManager[None]:
    """Return the lock of a folder, which is beside it: one, whether the folder is named by `.`, by a link or in full.

    Args:
        folder: which need not be there yet.
        what: as of `locked`.
    """
    place = folder.resolve()
    return locked(place.parent / f".{place.name}.lock", what)


def _owner(note: Path) -> str:
    """Who holds a lock, in words."""
    with suppress(OSError, ValueError):
        words = note.read_text(encoding="utf-8").split()
        if words:
            return " ".join(words)[:200]
    return "another process"
