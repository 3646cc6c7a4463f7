"""The cells of a CSV file as text, with the line that each row begins in."""

import csv
from io import StringIO
from pathlib import Path

import pandas as pd

from plumbline.core.errors import PlumblineError
from plumbline.core.files import csv_text


def csv_cells(path: Path) -> pd.DataFrame:
    """Return the cells of a CSV file; its index is the line of each row in the file, the header being in line 1.

    Empty lines are no rows. Cells that a row lacks are empty.

    Raises:
        PlumblineError: no such file, a folder, not text, empty, a quotation without end, or a row with more cells than
            the header.
    """
    lines, rows = [], []
    end = 0
    reader = csv.reader(StringIO(csv_text(path), newline=""), skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if any(map(str.strip, row)):
                lines.append(end + 1)
                rows.append(row)
            end = reader.line_num
    except csv.Error as error:
        raise PlumblineError(f"{path}, line {end + 1}: no row of a CSV file ({error})") from error
    if not rows:
        raise PlumblineError(f"{path} is empty: a CSV file is wanted")
    header, *body = rows
    width = len(header)
    for line, row in zip(lines[1:], body, strict=True):
        if width > 1 and any(map(str.strip, row[width:])):  # one column: its separator is another, as will be said
            raise PlumblineError(f"{path}, line {line}: {len(row)} cells, and the header has {width}")
    filled = [[*row[:width], *[""] * (width - len(row))] for row in body]
    return pd.DataFrame(filled, lines[1:], header, dtype=object)
