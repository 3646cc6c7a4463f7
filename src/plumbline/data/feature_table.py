"""Tables of features as they are read: what a file holds and rests on, not what its kind must hold.

Who reads a table by this alone rests on no code that builds other ones.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as parquet

from plumbline.core.errors import PlumblineError

METADATA = b"plumbline"
"""Where a file says what it rests on."""

TRAIN, TEST = PARTS = ("train", "test")
"""What the column `part` says, of tables in two parts."""


def read_table(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table in a Parquet file that `plumbline.data.features` wrote, and what it rests on.

    Raises:
        PlumblineError: not there, truncated, corrupt, or written by others; with the remedy.
    """
    try:
        content = parquet.read_table(path)
        table = content.to_pandas()
    except (arrow.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    return table, _metadata(content.schema, path)


def _metadata(schema: arrow.Schema, path: Path) -> dict[str, Any]:
    try:
        return json.loads(schema.metadata[METADATA])
    except (KeyError, TypeError) as error:
        raise PlumblineError(f"{path} does not say what it was built from: delete it and run again") from error


def _unreadable(path: Path, error: Exception) -> PlumblineError:
    if isinstance(error, FileNotFoundError):
        return PlumblineError(f"no features at {path}: `plumbline features {path.stem}` builds them")
    return PlumblineError(f"{path} is corrupt ({' '.join(str(error).split())}): delete it and run again")
