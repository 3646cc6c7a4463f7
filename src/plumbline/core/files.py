"""Atomic writing of files, their checksums, and reading with errors of one line."""

import errno
import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core.errors import PlumblineError

if TYPE_CHECKING:
    import pandas as pd

SEAL = b"plumbline, sha256 of what follows: "
"""The beginning of a sealed file; then come the digest in hex, a line end, and the content."""


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


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically."""
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8")


def write_sealed(path: Path, content: bytes) -> None:
    """Write `content` to `path` atomically, after its checksum."""
    with atomic(path) as part:
        part.write_bytes(SEAL + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def read_sealed(path: Path) -> bytes:
    """Return the content of a file that `write_sealed` wrote.

    Raises:
        PlumblineError: its bytes are not those that were written.
    """
    head, _, content = path.read_bytes().partition(b"\n")
    if not head.startswith(SEAL):
        raise PlumblineError("it does not begin with its checksum: it is damaged, or of an older version")
    if head.removeprefix(SEAL) != hashlib.sha256(content).hexdigest().encode():
        raise PlumblineError("its checksum is not that of its bytes: it is damaged")
    return content


def digest_of(path: Path) -> str:
    """The SHA-256 of the bytes of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def set_aside(path: Path) -> Path:
    """Rename a damaged file to a name beside it that is free, `<name>.damaged`, and return that: nothing is lost."""
    place, count = path.with_name(f"{path.name}.damaged"), 1
    while place.exists():
        count += 1
        place = path.with_name(f"{path.name}.damaged-{count}")
    return path.rename(place)


def warn_damaged(path: Path, reason: str, otherwise: str, *besides: Path) -> None:
    """Set a damaged file aside, with those that are worth nothing without it, and say so in a warning of one line."""
    kept = [set_aside(one).name for one in (path, *besides) if one.is_file()]
    moved = f", kept as {' and '.join(kept)}" if kept else ""
    warnings.warn(f"{path} cannot be read ({' '.join(reason.split())[:300]}){moved}: {otherwise}", stacklevel=3)


@contextmanager
def reading(path: Path, otherwise: str, *besides: Path) -> Iterator[None]:
    """Set `path` aside where the block cannot read it, with a warning of one line: `otherwise` happens instead.

    Args:
        path: what the block reads.
        otherwise: what happens instead, in words.
        besides: files that are worth nothing without it, and are set aside too.

    Raises:
        MemoryError: the file is too large for this machine, but not damaged.
        OSError: the file is there, and the machine cannot read it.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # a file half written when a machine crashed may raise any error
        if isinstance(error, OSError) and error.errno not in (None, errno.ENOENT):
            raise
        warn_damaged(path, str(error) or type(error).__name__, otherwise, *besides)


def read_json(path: Path, needs: Iterable[str] = (), remedy: str = "delete it and run again") -> dict[str, Any]:
    """Return the mapping in a JSON file that plumbline wrote.

    Raises:
        PlumblineError: no such file, damaged, no mapping, or it lacks one of the names that it `needs`; with `remedy`.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PlumblineError(f"no file {path}: {remedy}") from error
    except (ValueError, RecursionError) as error:
        raise PlumblineError(f"{path} is damaged, it is no JSON ({' '.join(str(error).split())}): {remedy}") from error
    if not isinstance(content, dict):
        raise PlumblineError(f"{path} is damaged, it holds no mapping of names to values: {remedy}")
    if missing := [name for name in needs if name not in content]:
        raise PlumblineError(f"{path} is damaged or of another version, it has no {missing[0]!r}: {remedy}")
    return content


WORDS = ("task", "method", "class", "track", "title", "commit", "libraries", "experiment", "experiments", "claim")
"""Columns of tables that are never numbers, whatever they look like: a commit may be 876789693972 or 12345678e901."""


SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}
"""Marks that other programs write between columns, in the place of commas."""


def csv_text(path: Path) -> str:
    """Return the text of a CSV file, without a byte-order mark.

    Raises:
        PlumblineError: no such file, a folder, not text, or JSON.
    """
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise PlumblineError(f"no file {path}") from error
    except IsADirectoryError as error:
        raise PlumblineError(f"{path} is a folder, not a CSV file") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlumblineError(f"{path} is not text in UTF-8, as a CSV file is") from error
    if "\0" in text:
        raise PlumblineError(f"{path} is not text, as a CSV file is")
    if text.lstrip().startswith(("{", "[")):
        raise PlumblineError(f"{path} is JSON, and not a CSV file")
    return text


def other_separator(header: Sequence[str], wanted: Iterable[str]) -> str:
    """Return the word for what separates the columns of a header in the place of commas, or nothing.

    Such a header is read as one column, whose name has some of those that are `wanted`.
    """
    for mark, word in SEPARATORS.items() if len(header) == 1 else ():
        names = {name.strip(" \"'").casefold() for name in header[0].split(mark)}
        if len(names) > 1 and names & set(wanted):
            return word
    return ""


def read_csv(
    path: Path, columns: Iterable[str] = (), numbers: Sequence[str] = (), remedy: str = "write it again"
) -> "pd.DataFrame":
    """Return the table in a CSV file, with text in the columns `WORDS`.

    Args:
        path: of the file.
        columns: that it must have.
        numbers: columns that must be there, and whose every cell must be a number.
        remedy: what to do otherwise, in words.

    Raises:
        PlumblineError: no such file, no table, a column that is missing, or a cell that is no number; with `remedy`.
    """
    import numpy as np  # here: many commands that import this module read no table
    import pandas as pd

    try:
        text = csv_text(path)
        table = pd.read_csv(StringIO(text), dtype=dict.fromkeys(WORDS, str))
    except PlumblineError as error:
        raise PlumblineError(f"{error}: {remedy}") from error
    except ValueError as error:
        reason = " ".join(str(error).split())[:200]
        raise PlumblineError(f"{path} is damaged, it is no table ({reason}): {remedy}") from error
    if missing := [name for name in (*columns, *numbers) if name not in table]:
        if word := other_separator(list(map(str, table)), missing):
            raise PlumblineError(f"{path} seems to have {word} between its columns, and not commas: {remedy}")
        raise PlumblineError(f"{path} has no column {missing[0]!r}: {remedy}")
    if not text.endswith(("\n", "\r")):
        raise PlumblineError(f"{path} is cut off, its last line has no end: {remedy}")
    for name in numbers:
        wrong = ~np.isfinite(pd.to_numeric(table[name], errors="coerce").to_numpy(float))
        if wrong.any():
            row = int(wrong.argmax())
            cell = table[name].iloc[row]
            raise PlumblineError(f"{path}, line {row + 2}: {name} is {cell}, not a number: {remedy}")
    return table
