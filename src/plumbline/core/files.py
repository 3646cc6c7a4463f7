"""Atomic writing of files, their checksums, and reading with errors of one line."""

import csv
import errno
import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from plumbline.core.errors import PlumblineError

if TYPE_CHECKING:
    import pandas as pd

SEAL = b"plumbline, sha256 of what follows: "
"""The beginning of a sealed file; then come the digest in hex, a line end, and the content."""


PART = re.compile(r"\..+\.[0-9a-f]{8}")
"""Names of the temporary files of `atomic`."""


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and rename it to `path` when the block succeeds.

    A reader finds the old file or the new one, never a part of it: one rename on one file system is atomic. After an
    exception, a full disk included, the temporary file is deleted and `path` is unchanged.

    Raises:
        OSError: of the machine; it names `path` where it is about the temporary file, which nobody has named.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{token_hex(4)}")
    try:
        part.touch(exist_ok=False)  # with the access that the user's umask gives, which `tempfile` narrows
        try:
            yield part
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        if error.filename is not None and os.fspath(error.filename) in (str(part), os.fsencode(part)):
            error.filename, error.filename2 = str(path), None
        raise


def parts_in(folder: Path) -> Iterator[Path]:
    """The temporary files in a folder that `atomic` left there when it was killed, or uses now."""
    return (path for path in folder.glob(".*") if PART.fullmatch(path.name))


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


def machine_failed(error: BaseException) -> bool:
    """Return whether a file could not be read for lack of memory, of open files and the like: it may be sound."""
    if isinstance(error, OSError):
        return error.errno not in (None, errno.ENOENT)
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)  # torch's error is a RuntimeError


def raise_if_machine_failed(error: BaseException, path: Path | str) -> None:
    """Raise the machine's error where `path` could not be read by its fault; return where the file is damaged.

    Raises:
        OSError: of the machine; ENOMEM where memory does not suffice, which a damaged file may ask for too much of.
    """
    if machine_failed(error):
        if isinstance(error, OSError):
            raise error
        raise OSError(errno.ENOMEM, "not enough memory to read it, unless it is damaged", str(path)) from error


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
    except Exception as error:  # a file half written when a machine crashed may raise any error
        if machine_failed(error):
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

MISSING = ("", "nan", "NaN", "NA")
"""What a cell has in place of a number; in a column of `WORDS` the empty one alone: a task may be called nan."""

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}
"""Marks that other programs write between columns, in place of commas."""


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
    """Return the word for what separates the columns of a header in place of commas, or nothing.

    Such a header is read as one column, whose name has some of those that are `wanted`.
    """
    for mark, word in SEPARATORS.items() if len(header) == 1 else ():
        names = {name.strip(" \"'").casefold() for name in header[0].split(mark)}
        if len(names) > 1 and names & set(wanted):
            return word
    return ""


def csv_rows(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row of a CSV file with the line that it begins in; empty lines are no rows.

    Raises:
        PlumblineError: what is no row, such as a quotation without end; with `path`.
    """
    lines = list(StringIO(text, newline=""))
    reader = csv.reader(lines, skipinitialspace=True, strict=True)
    end = 0
    try:
        for row in reader:
            if "".join(lines[end : reader.line_num]).strip(" \t\r\n"):
                yield end + 1, row
            end = reader.line_num
    except csv.Error as error:
        raise PlumblineError(f"{path}, line {end + 1}: no row of a CSV file ({error})") from error


def csv_cells(path: Path) -> "pd.DataFrame":
    """Return the cells of a CSV file; its index is the line of each row in the file, the header being in line 1.

    Lines without a cell are no rows. Cells that a row lacks are empty.

    Raises:
        PlumblineError: no such file, a folder, not text, empty, a quotation without end, or a row with more cells than
            the header.
    """
    import pandas as pd

    found = [(line, row) for line, row in csv_rows(csv_text(path), path) if any(map(str.strip, row))]
    if not found:
        raise PlumblineError(f"{path} is empty: a CSV file is wanted")
    (_, header), *body = found
    width = len(header)
    for line, row in body:
        if width > 1 and any(map(str.strip, row[width:])):  # one column: its separator is another, as will be said
            raise PlumblineError(f"{path}, line {line}: {len(row)} cells, and the header has {width}")
    filled = [[*row[:width], *[""] * (width - len(row))] for _, row in body]
    return pd.DataFrame(filled, [line for line, _ in body], header, dtype=object)


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
        PlumblineError: no such file, no table, a column that is missing or there twice, a row with more cells than the
            header, or a cell that is no number; with `remedy`.
    """
    try:
        return _table_of(csv_text(path), path, columns, numbers)
    except PlumblineError as error:
        raise PlumblineError(f"{error}: {remedy}") from error


def _table_of(text: str, path: Path, columns: Iterable[str], numbers: Sequence[str]) -> "pd.DataFrame":
    """Return the table of a text, by pandas, which reads ten times as fast as cell by cell; see `read_csv`."""
    import numpy as np  # here: many commands that import this module read no table
    import pandas as pd

    _, header = next(csv_rows(text, path), (1, []))
    if not header:
        raise PlumblineError(f"{path} is empty")
    if missing := [name for name in (*columns, *numbers) if name not in header]:
        if word := other_separator(header, missing):
            raise PlumblineError(f"{path} seems to have {word} between its columns, and not commas")
        raise PlumblineError(f"{path} has no column {missing[0]!r}")
    if twice := [name for name in header if header.count(name) > 1]:
        raise PlumblineError(f"{path} has two columns {twice[0]!r}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # of rows that pandas would cut
            table = pd.read_csv(
                StringIO(text),
                header=0,
                names=header,
                index_col=False,
                skipinitialspace=True,
                dtype={name: str for name in header if name in WORDS},
                keep_default_na=False,
                na_values={name: [""] if name in WORDS else list(MISSING) for name in header},
            )
    except (ValueError, pd.errors.ParserWarning) as error:
        csv_cells(path)  # which is slower, and names the line
        raise PlumblineError(f"{path} is no table ({' '.join(str(error).split())[:200]})") from error
    if not text.endswith(("\n", "\r")):
        raise PlumblineError(f"{path} is cut off, its last line has no end")
    for name in numbers:
        wrong = ~np.isfinite(pd.to_numeric(table[name], errors="coerce").to_numpy(float))
        if wrong.any():
            row = int(wrong.argmax())
            line = [line for line, _ in csv_rows(text, path)][row + 1]
            raise PlumblineError(f"{path}, line {line}: {name} is {table[name].iloc[row]}, not a number")
    return table
