"""A CSV file that grows row by row, so that a long run can be stopped at any moment and continued."""

import csv
import os
from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from plumbline.core.errors import PlumblineError
from plumbline.core.locks import locked


class Ledger:
    """Rows on file; each is on the disk before `append` returns.

    Args:
        path: of the file, made with the first row.
        columns: names of its columns, and their types.
    """

    def __init__(self, path: Path, columns: Mapping[str, type]) -> None:
        self.path, self.columns = path, columns

    def append(self, row: Mapping[str, Any]) -> None:
        """Append a row, after dropping the part of a row that a kill left at the end.

        Raises:
            PlumblineError: the file has other columns.
        """
        with locked(self.path.with_name(f"{self.path.name}.lock"), "appends a row"):
            self._refuse_other_columns()
            with self.path.open("a+b") as file:
                file.truncate(self._whole())
                file.seek(0, os.SEEK_END)
                new = [dict(zip(self.columns, self.columns, strict=True))] if file.tell() == 0 else []
                file.write(_lines([*new, row], self.columns))
                file.flush()
                os.fsync(file.fileno())

    def rows(self) -> pd.DataFrame:
        """Return the whole rows; a last row that was cut off is not among them.

        Raises:
            PlumblineError: the file has other columns.
        """
        if not self._whole():
            return pd.DataFrame(columns=list(self.columns))
        self._refuse_other_columns()
        with self.path.open("rb") as file:
            whole = file.read(self._whole()).decode()
        return pd.read_csv(StringIO(whole), dtype=dict(self.columns), float_precision="round_trip")

    def _whole(self) -> int:
        """Return the number of bytes up to the end of the last whole row."""
        return self.path.read_bytes().rfind(b"\n") + 1 if self.path.is_file() else 0

    def _refuse_other_columns(self) -> None:
        if self._whole():
            with self.path.open(encoding="utf-8", newline="") as file:
                there = next(csv.reader(file))
            if there != list(self.columns):
                raise PlumblineError(f"{self.path}: it has columns {there}, not {list(self.columns)}: move it away")


def _lines(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, type]) -> bytes:
    """Return rows as they are on file."""
    text = StringIO()
    csv.DictWriter(text, list(columns), lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
