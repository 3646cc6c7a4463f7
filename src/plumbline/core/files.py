"""Files that are either whole or not there."""

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and move it there when the block ends well.

    A reader sees the old file or the new one, never a part: the move is one rename on one file system. After an
    exception, a full disk included, the temporary file is gone and `path` is as it was.
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
    """Say in a warning of one line that `path` cannot be read, and what is done then, if the block raises.

    Raises:
        MemoryError: the file is too large for this machine; there is nothing wrong with it.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # a half-written file of a crashed machine may raise anything
        reason = " ".join(str(error).split())
        warnings.warn(f"{path} cannot be read ({reason}): {otherwise}", stacklevel=4)


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically."""
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8")
