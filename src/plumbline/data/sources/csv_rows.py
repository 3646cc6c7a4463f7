"""Rows of a csv file, each checked on its own, such that a bad row does not cost the others."""

import csv
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.data.sources.archives import text_lines

log = logging.getLogger(__name__)

LISTED = 5
"""Number of rows left out that a warning names."""

Bad = list[tuple[str, str]]
"""Rows that were left out: where, and why."""


def csv_rows(path: Path, columns: Mapping[str, str], what: str) -> tuple[dict[int, dict[str, str]], Bad]:
    """Return the cells of some columns of a csv file by line number, and the rows that are no rows of its table.

    Commas and line ends in quotes belong to a cell. A line of metadata before the header is skipped.

    Args:
        path: the file, compressed or not.
        columns: names of the columns to read, as the file has them, and as they are returned.
        what: what a file without these columns is not.

    Raises:
        PlumblineError: the file is missing or damaged, or lacks a column or has it twice.
    """
    lines = text_lines(path)
    headers = [[cell.strip() for cell in _record(lines, place)[0]] for place in range(min(2, len(lines)))]
    header = max(headers, key=lambda names: len(set(columns) & set(names)))
    for name, ours in columns.items():
        if header.count(name) != 1:
            how = f"{header.count(name)} columns" if name in header else "no column"
            raise PlumblineError(f"{path} has {how} {ours}: it is {what}")
    rows: dict[int, dict[str, str]] = {}
    bad: Bad = []
    for number, cells in _records(lines, headers.index(header) + 1, len(header)):
        if len(cells) == len(header):
            held = dict(zip(header, cells, strict=True))
            rows[number] = {ours: held[name].strip() for name, ours in columns.items()}
        else:
            bad.append((f"line {number}", f"{len(cells)} cells, not {len(header)}" if cells else "a broken quotation"))
    return rows, bad


def _record(lines: Sequence[str], place: int) -> tuple[list[str], int]:
    """Return the cells of the row that begins in a line, and how many lines it takes; no cells if csv forbids it."""
    reader = csv.reader((f"{lines[i]}\n" for i in range(place, len(lines))), strict=True)
    try:
        return next(reader, []), reader.line_num
    except csv.Error:
        return [], 1


def _records(lines: Sequence[str], place: int, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each row from line `place` on, without empty lines.

    A broken row is taken to end with its line: a quotation that never ends would take in all rows below it.
    """
    while place < len(lines):
        cells, taken = _record(lines, place)
        if lines[place].strip(" \t,"):
            yield place + 1, cells
        place += taken if len(cells) == width else 1


def say_left_out(path: Path, bad: Bad, total: int) -> None:
    """Log a warning that counts and lists the rows left out, if there are any."""
    if bad:
        log.warning("%s: %d of %d rows are left out%s", path, len(bad), total, listed([": ".join(one) for one in bad]))


def listed(items: Sequence[str]) -> str:
    """Return the first items in brackets, each cut off after 60 characters; nothing for none."""
    some = "; ".join(" ".join(item.split())[:60] for item in items[:LISTED])
    return f" ({some}{'; ...' if len(items) > LISTED else ''})" if items else ""


def nothing_left(path: Path, bad: Bad, why: str) -> PlumblineError:
    """Return the error for a file of which no row can be used."""
    reason = "".join(f"; {where}: {what}" for where, what in bad[:1])
    return PlumblineError(f"{path} cannot be read (nothing is left of {path.name}: {why}{reason}): fetch it again")
