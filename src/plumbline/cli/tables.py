"""Tables on standard output: in a terminal words are wrapped to its width, and no number is ever cut."""

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from csv import writer as csv_writer
from itertools import zip_longest
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

from plumbline.analysis.comparisons.numbers import significant

if TYPE_CHECKING:
    import pandas as pd

UNLIMITED = 10_000
"""Columns of a pipe or a file, whose lines are never wrapped."""

USUAL = 80
"""Columns of a terminal that does not know its own."""

SHORTEST = 10
"""Least width of a column of words, unless its longest cell is shorter."""

UNBROKEN = 16
"""Letters up to which a word stays in one piece, be the table wider than the terminal."""

READABLE = 30
"""Least width of a column of sentences that may stand below their rows."""

GAP = "  "

PIECES = re.compile(r"[^\s-]+-?|-+")
"""Of a text: lines end after them."""


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Iterable[str] = (),
    title: str = "",
    below: str = "",
) -> None:
    """Print rows under their headers.

    Args:
        headers: of the columns.
        rows: a text a column each.
        numbers: headers of the columns of numbers, which are aligned to the right and never wrapped or cut.
        title: a line above.
        below: header of a column of sentences, which stand below their rows where the terminal is too narrow.
    """
    if title:
        print(title)
    for line in table_lines(headers, [list(row) for row in rows], set(numbers), terminal_width(), below):
        print(line)


def table_lines(
    headers: Sequence[str], rows: Sequence[Sequence[str]], numbers: Iterable[str], columns: int, below: str = ""
) -> list[str]:
    """Return the lines of a table of at most so many columns, if its numbers leave the room.

    Sentences wrap first, and names only where that is not enough: a name in two lines is hard to copy.
    The column `below` has lines of its own where fewer than `READABLE` letters of it would be in one.
    """
    widths, fixed = _widths(headers, rows, set(numbers), columns)
    place = headers.index(below) if below in headers else -1
    if place < 0 or widths[place] >= min(READABLE, max((len(row[place]) for row in rows), default=0)):
        return [line for row in (headers, *rows) for line in _row_lines(row, widths, fixed)]
    table = [[cell for i, cell in enumerate(row) if i != place] for row in (headers, *rows)]
    widths, fixed = _widths(table[0], table[1:], set(numbers), columns)
    indent = 2 * GAP
    sentences = textwrap.TextWrapper(columns, initial_indent=indent, subsequent_indent=indent, break_long_words=False)
    return [
        line
        for row, whole in zip(table, (headers, *rows), strict=True)
        for line in (*_row_lines(row, widths, fixed), *sentences.wrap(whole[place]))
    ]


def _widths(
    headers: Sequence[str], rows: Sequence[Sequence[str]], numbers: set[str], columns: int
) -> tuple[list[int], list[bool]]:
    """Return the width of each column, and whether it is one of numbers."""
    fixed = [header in numbers for header in headers]
    sentences = [any(" " in row[i] for row in rows) for i in range(len(headers))]
    longest = [max((len(row[i]) for row in rows), default=0) for i in range(len(headers))]
    texts = [[header, *(row[i] for row in rows)] for i, header in enumerate(headers)]
    words = [max((len(word) for text in some for word in PIECES.findall(text)), default=0) for some in texts]
    least = [
        max(most if number else min(most, SHORTEST), min(word, UNBROKEN))
        for most, number, word in zip(longest, fixed, words, strict=True)
    ]
    widths = [max(len(header), most) for header, most in zip(headers, longest, strict=True)]
    room = columns - len(GAP) * (len(widths) - 1)
    while sum(widths) > room:
        spare = [width - most for width, most in zip(widths, least, strict=True)]
        if max(spare) <= 0:
            break
        shrink = max(range(len(widths)), key=lambda i: (spare[i] > 0, sentences[i], widths[i]))
        widths[shrink] -= 1
    return widths, fixed


def _row_lines(row: Sequence[str], widths: Sequence[int], fixed: Sequence[bool]) -> Iterable[str]:
    cells = [textwrap.wrap(cell, max(width, 1)) for cell, width in zip(row, widths, strict=True)]
    for parts in zip_longest(*cells, fillvalue=""):
        aligned = (
            part.rjust(width) if number else part.ljust(width)
            for part, width, number in zip(parts, widths, fixed, strict=True)
        )
        yield GAP.join(aligned).rstrip()


def print_words(line: str) -> None:
    """Print a line of words, wrapped to the terminal."""
    print(textwrap.fill(line, terminal_width(), break_long_words=False, break_on_hyphens=False))


def terminal_width() -> int:
    """The number in COLUMNS if it has one, else the width of the terminal; a pipe or a file is unlimited."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isascii() and asked.isdigit() and int(asked[:9]) > 0:
        return int(asked[:9])
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or USUAL
    except OSError:
        return UNLIMITED


def print_frame(frame: "pd.DataFrame", csv: bool = False, title: str = "") -> None:
    """Print a data frame as a table, or as CSV with numbers of six digits."""
    if csv:
        frame.to_csv(sys.stdout, index=False, float_format="%.6g")
        return
    headers = {str(name): str(name).replace("_", " ") for name in frame}
    numbers = [headers[str(name)] for name in frame.select_dtypes("number")]
    rows = ([written(value) for value in row] for row in frame.itertuples(index=False, name=None))
    print_table(list(headers.values()), rows, numbers, title)


def print_csv(headers: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Print rows of words, whole numbers and truth values as CSV, as `print_frame` prints a data frame."""
    writer = csv_writer(sys.stdout, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(rows)


def written(value: Any, digits: int = 4) -> str:
    """Return a value as text: numbers with `digits` significant digits, a dash where there is none."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return significant(value if isfinite(value) else nan, digits)
    return str(value)
