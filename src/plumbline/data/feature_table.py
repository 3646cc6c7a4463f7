"""Reading of feature tables and their provenance, without the schemas of their kinds.

Code that reads tables with this module alone does not depend on the code that builds them.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as parquet

from plumbline.core.errors import PlumblineError

METADATA = b"plumbline"
"""Key of the provenance in a file's metadata."""

TRAIN, TEST = PARTS = ("train", "test")
"""Values of the column `part` in tables with a training and a test part."""


def read_table(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table in a Parquet file that `plumbline.data.features` wrote, and its provenance.

    Raises:
        PlumblineError: the file is missing, truncated, corrupt, or from another program; the message has the remedy.
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
