"""Tables of verdicts and of doubts about them, as they are read from files."""

from pathlib import Path

import numpy as np
import pandas as pd

from plumbline.analysis.verdicts.verdict import COLUMNS
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.files import csv_cells, read_csv
from plumbline.core.places import or_shipped
from plumbline.store.reference_files import DOUBTS
from plumbline.study.verdicts import OUTCOMES, VERDICTS

WORDS = (
    *("missing", "sentence", "test", "published", "because", "stuck"),
    *("baseline", "baseline_task", "options"),
)
"""Columns of a table of claims that may be empty, and are no numbers."""


def read_claims(path: Path) -> pd.DataFrame:
    """Return a table of claims.

    Raises:
        PlumblineError: no such file, or no table of claims; a verdict or an outcome that there is not.
    """
    if not path.is_file():
        raise PlumblineError(f"no table of claims at {path}")
    try:
        found = read_csv(path, COLUMNS, remedy=JUDGE_AGAIN)
    except PlumblineError as error:
        raise PlumblineError(f"{path} is no table of claims: {error}") from error
    for name, allowed in WORDINGS.items():
        wrong = (found[name].notna() & ~found[name].isin(allowed)).to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            word = str(found[name].iloc[row])
            raise PlumblineError(f"{path}, line {_line(path, row)}: {unknown(name, word, allowed)}: {JUDGE_AGAIN}")
    return found.astype(dict.fromkeys(WORDS, object)).fillna(dict.fromkeys(WORDS, ""))


JUDGE_AGAIN = "`plumbline claims` or `plumbline reference` writes it again"

WORDINGS: dict[str, tuple[str, ...]] = {
    "role": ("primary", "secondary"),
    "outcome": OUTCOMES,
    "verdict": VERDICTS,
}
"""Columns of a table of claims that hold one of some words."""


def read_doubts(claims: Path) -> pd.DataFrame:
    """Return the doubts that lie beside a table of claims: `claims`, apart by spaces, the `doubt`, and its `repair`.

    Raises:
        PlumblineError: the file is no table with these columns, or a cell of theirs is empty.
    """
    path = or_shipped(claims.with_name(DOUBTS))
    columns = ["claims", "doubt", "repair"]
    if not path.is_file():
        return pd.DataFrame(columns=columns)
    found = read_csv(path, columns, remedy="write it as docs/guide says, or take it from version control")
    empty = found[columns].isna().to_numpy()
    if empty.any():
        row, column = (int(index) for index in np.argwhere(empty)[0])
        raise PlumblineError(
            f"{path}, line {_line(path, row)}: there is no {columns[column]}: write it, or delete the line"
        )
    return found


def _line(path: Path, row: int) -> int:
    """Return the line of a row in a file."""
    return int(csv_cells(path).index[row])
