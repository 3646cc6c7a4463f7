"""Atomic writing of files, and warnings about unreadable ones."""

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and rename it to `path` when the block succeeds.

    A reader finds the old file or the new one, never a part of it: one rename on one file system is atomic. After an
    exception, a full disk included, the temporary file is deleted and `path` is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o644)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def reading(path: Path, otherwise: str) -> Iterator[None]:
    """Turn an exception of the block into a one-line warning: `path` cannot be read, and `otherwise` happens instead.

    Raises:
        MemoryError: the file is too large for this machine, but not damaged.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # a file half written when a machine crashed may raise any error
        reason = " ".join(str(error).split())
        warnings.warn(f"{path} cannot be read ({reason}): {otherwise}", stacklevel=4)


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically."""
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8")
