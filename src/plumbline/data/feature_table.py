"""Reading of feature tables and their provenance, without the schemas of their kinds.

Code that reads tables with this module alone does not depend on the code that builds them.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as parquet
from pydantic import BaseModel

from plumbline.core.errors import PlumblineError
from plumbline.core.files import raise_if_machine_failed

METADATA = b"plumbline"
"""Key of the provenance in a file's metadata."""

TRAIN, TEST = PARTS = ("train", "test")
"""Values of the column `part` in tables with a training and a test part."""


class _Kind(BaseModel):
    kind: str


class _Source(BaseModel):
    name: str
    features: _Kind


class _Provenance(BaseModel):
    """What the provenance of any table has; it has more."""

    dataset: _Source


def read_table(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table in a Parquet file that `plumbline.data.features` wrote, and its provenance.

    Raises:
        PlumblineError: the file is missing, damaged, from another program, or of another data set than the one that it
            is named after; the message has the remedy.
    """
    try:
        content = parquet.read_table(path, page_checksum_verification=True)
        table = content.to_pandas()
    except Exception as error:  # Arrow and pandas may raise any error on a damaged file
        if isinstance(error, PermissionError | IsADirectoryError):
            raise PlumblineError(f"{path} cannot be read: {error.strerror}") from error
        raise_if_machine_failed(error, path)
        raise _unreadable(path, error) from error
    return table, _metadata(content.schema, path)


def _metadata(schema: arrow.Schema, path: Path) -> dict[str, Any]:
    try:
        rests_on = json.loads((schema.metadata or {})[METADATA])
        name = _Provenance.model_validate(rests_on).dataset.name
    except (KeyError, ValueError) as error:
        raise PlumblineError(f"{path} does not say what it was built from: delete it and run again") from error
    if name != path.stem:
        raise PlumblineError(
            f"{path} was built from the dataset {name!r}, not from {path.stem!r}: delete it, then "
            f"`plumbline features {path.stem}` builds the right one"
        )
    return rests_on


def _unreadable(path: Path, error: Exception) -> PlumblineError:
    if isinstance(error, FileNotFoundError):
        return PlumblineError(f"no features at {path}: `plumbline features {path.stem}` builds them")
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return PlumblineError(f"{path} is corrupt ({reason}): delete it and run again")
