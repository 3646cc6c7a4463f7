"""Tables of features: built once from a dataset, kept as Parquet with their provenance."""

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pyarrow as arrow
import pyarrow.parquet as parquet

from plumbline import files
from plumbline.data.datasets import Dataset
from plumbline.data.generated import generated_molecules
from plumbline.data.molecules import DESCRIPTORS, TARGETS, describe_molecules, read_smiles, sample_rows
from plumbline.errors import PlumblineError

_FINITE = pa.Check(np.isfinite, error="finite numbers")

SCHEMA = pa.DataFrameSchema(
    {
        "smiles": pa.Column(str, unique=True),
        **{name: pa.Column(float, _FINITE) for name in (*DESCRIPTORS, *TARGETS)},
        "qed": pa.Column(float, pa.Check.in_range(0.0, 1.0)),
        "sa": pa.Column(float, pa.Check.in_range(0.0, 11.0)),
    },
    strict=True,
)

METADATA = b"plumbline"


def build_features(dataset: Dataset, raw: Path | None = None, jobs: int = 1) -> pd.DataFrame:
    """Return the table of a dataset: canonical SMILES, descriptors, targets.

    Args:
        dataset: with its `features` entry.
        raw: the fetched file; None for generated datasets.
        jobs: processes; the table is the same for any number.

    Raises:
        PlumblineError: a dataset that has no features, or no file where one is needed.
    """
    how = dataset.features
    if how is None:
        raise PlumblineError(f"dataset {dataset.name!r} has no `features` entry: nothing is built from it")
    if how.kind == "generated-molecules":
        return describe_molecules(generated_molecules(how.rows, how.seed), jobs)
    if raw is None:
        raise PlumblineError(f"dataset {dataset.name!r} is built from {dataset.file}: fetch it and name it with --raw")
    return describe_molecules(sample_rows(read_smiles(raw, how.member), how.rows, how.seed), jobs)


def provenance(dataset: Dataset) -> dict[str, Any]:
    """Return what a table rests on: the dataset's entry and the RDKit that computed it."""
    return {"dataset": dataset.model_dump(mode="json"), "rdkit": importlib.metadata.version("rdkit")}


def _check(table: pd.DataFrame, source: str | Path) -> pd.DataFrame:
    try:
        return SCHEMA.validate(table)
    except (pa.errors.SchemaError, pa.errors.SchemaErrors) as error:
        raise PlumblineError(f"{source}: features break their schema: {' '.join(str(error).split())[:300]}") from error


def write_features(table: pd.DataFrame, path: Path, dataset: Dataset) -> None:
    """Write a checked table to Parquet atomically, with its provenance.

    Raises:
        PlumblineError: a table that breaks the schema.
    """
    content = arrow.Table.from_pandas(_check(table, path), preserve_index=False)
    metadata = {**(content.schema.metadata or {}), METADATA: json.dumps(provenance(dataset)).encode()}
    with files.atomic(path) as part:
        parquet.write_table(content.replace_schema_metadata(metadata), part)


def read_features(path: Path) -> pd.DataFrame:
    """Return the checked table in a Parquet file.

    Raises:
        PlumblineError: not there, truncated, corrupt, or not as the schema says; with the remedy.
    """
    try:
        table = parquet.read_table(path).to_pandas()
    except (arrow.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    return _check(table, path)


def read_provenance(path: Path) -> dict[str, Any]:
    """Return what the table at `path` rests on; see `provenance`.

    Raises:
        PlumblineError: not there, truncated, corrupt, or not written by `write_features`.
    """
    try:
        return json.loads(parquet.read_schema(path).metadata[METADATA])
    except (arrow.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    except (KeyError, TypeError) as error:
        raise PlumblineError(f"{path} does not say what it was built from: delete it and run again") from error


def _unreadable(path: Path, error: Exception) -> PlumblineError:
    if isinstance(error, FileNotFoundError):
        return PlumblineError(f"no features at {path}: `plumbline features {path.stem}` builds them")
    return PlumblineError(f"{path} is corrupt ({' '.join(str(error).split())}): delete it and run again")
