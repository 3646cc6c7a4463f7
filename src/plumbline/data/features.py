"""Tables of features, built once from a data set and stored as Parquet with their provenance."""

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pyarrow as arrow
import pyarrow.parquet as parquet

from plumbline.core import files
from plumbline.core.errors import PlumblineError
from plumbline.data.datasets import Dataset, Features
from plumbline.data.feature_table import METADATA, PARTS, read_table
from plumbline.data.generated.antibodies import generated_antibodies
from plumbline.data.generated.dna import generated_dna
from plumbline.data.generated.molecules import generated_molecules, made_up_docking_scores
from plumbline.data.generated.newsgroups import generated_newsgroups
from plumbline.data.sources import antibodies, dna, molecules
from plumbline.data.sources.antibodies import describe_pairs, read_pairs
from plumbline.data.sources.csv_rows import nothing_left
from plumbline.data.sources.dna import read_dna
from plumbline.data.sources.guacamol import OBJECTIVES, score_table
from plumbline.data.sources.molecules import (
    DOCKING,
    canonical_molecules,
    describe_molecules,
    read_docking,
    read_smiles,
    sample_rows,
)
from plumbline.data.sources.newsgroups import corpus, read_posts, words_of

_FINITE = pa.Check(np.isfinite, error="finite numbers")

MOLECULES = pa.DataFrameSchema(
    {
        "smiles": pa.Column(str, unique=True),
        **{name: pa.Column(float, _FINITE) for name in (*molecules.DESCRIPTORS, *molecules.TARGETS)},
        "qed": pa.Column(float, pa.Check.in_range(0.0, 1.0)),
        "sa": pa.Column(float, pa.Check.in_range(0.0, 11.0)),
    },
    strict=True,
)

ANTIBODIES = pa.DataFrameSchema(
    {
        **{chain: pa.Column(str, pa.Check.str_matches(r"^[A-Z]+$")) for chain in antibodies.CHAINS},
        **{name: pa.Column(float, _FINITE) for name in (*antibodies.DESCRIPTORS, *antibodies.TARGETS)},
    },
    strict=True,
    unique=list(antibodies.CHAINS),
)

SMILES = pa.DataFrameSchema({"smiles": pa.Column(str, unique=True)}, strict=True)
DNA = pa.DataFrameSchema(
    {
        **{name: pa.Column(float, pa.Check.isin((0.0, 1.0))) for name in dna.COLUMNS},
        dna.LABEL: pa.Column(float, pa.Check.isin(dna.LABELS)),
    },
    strict=True,
)

NEWSGROUPS = pa.DataFrameSchema(
    {
        "document": pa.Column(str, unique=True),
        "part": pa.Column(str, pa.Check.isin(PARTS)),
        "words": pa.Column(str, pa.Check.str_matches(r"^[a-z ]*$")),
    },
    strict=True,
)

SCHEMAS = {
    "molecules": MOLECULES,
    "docking": MOLECULES.add_columns({DOCKING: pa.Column(float, _FINITE)}),
    "antibodies": ANTIBODIES,
    "smiles": SMILES,
    "guacamol": SMILES.add_columns({name: pa.Column(float, pa.Check.in_range(0.0, 1.0)) for name in OBJECTIVES}),
    "dna": DNA,
    "newsgroups": NEWSGROUPS,
}
"""Schema of each kind of table; a generated table has the kind of the one it stands in for."""

DISTINCT = {
    **dict.fromkeys(("molecules", "docking"), tuple(molecules.DESCRIPTORS)),
    "antibodies": antibodies.DESCRIPTORS,
}
"""Columns in which no two rows of a table may agree, since a tabular problem finds a row by its features."""

SOUGHT = {
    **dict.fromkeys(("molecules", "smiles", "guacamol"), "no line is a molecule"),
    "antibodies": "no pair has two V domains",
    "dna": "no line has a label and features",
    "newsgroups": "it has no posts",
}
"""What a file of each kind lacks if nothing is left of it."""

LIBRARIES = {
    **dict.fromkeys(("molecules", "docking", "smiles", "guacamol"), "rdkit"),
    "antibodies": "biopython",
    **dict.fromkeys(("dna", "newsgroups"), "scikit-learn"),
}
"""Library that computes or reads each kind of table."""


def build_features(dataset: Dataset, raw: Path | None = None, jobs: int = 1) -> pd.DataFrame:
    """Return the table of a data set: molecules, antibodies, DNA or texts, with the columns of its kind (`SCHEMAS`).

    Most kinds have descriptors and targets. `smiles` has no other columns, which take minutes for a million molecules.
    `guacamol` has the scores of `plumbline.data.sources.guacamol.OBJECTIVES`.

    Args:
        dataset: data set with a `features` entry.
        raw: the fetched file; None for generated data sets.
        jobs: number of processes; the table is the same for any number.

    Raises:
        PlumblineError: the data set has no features; its file is missing or damaged, or nothing is left of it; or a
            file is given for generated data.
    """
    how = _how(dataset)
    if how.kind.startswith("generated-"):
        if raw is not None:
            raise PlumblineError(f"dataset {dataset.name!r} is generated, and not built from {raw}: leave --raw out")
        return _generate(how, jobs)
    if raw is None:
        raise PlumblineError(f"dataset {dataset.name!r} is built from {dataset.file}: fetch it and name it with --raw")
    table = _read(how, raw, jobs)
    if table.empty:
        raise nothing_left(raw, [], SOUGHT[how.kind])
    return table


def _read(how: Features, raw: Path, jobs: int) -> pd.DataFrame:
    """Return the table built from a file; it may be empty."""
    if how.kind in ("docking", "dna"):
        table = read_docking(raw) if how.kind == "docking" else read_dna(raw)
        return table.loc[sample_rows(range(len(table)), how.rows, how.seed)].reset_index(drop=True)
    if how.kind == "newsgroups":
        return corpus({name: words_of(text) for name, text in read_posts(raw).items()}, how.rows, how.seed)
    if how.kind == "antibodies":
        return describe_pairs(sample_rows(read_pairs(raw), how.rows, how.seed), jobs)
    return _describe(how.kind, sample_rows(read_smiles(raw, how.member), how.rows, how.seed), jobs)


def _describe(kind: str, smiles: list[str], jobs: int) -> pd.DataFrame:
    if kind == "molecules":
        return describe_molecules(smiles, jobs)
    table = canonical_molecules(smiles, jobs)
    return table if kind == "smiles" else pd.concat([table, score_table(table["smiles"].tolist(), jobs)], axis=1)


def _generate(how: Features, jobs: int) -> pd.DataFrame:
    if how.kind == "generated-dna":
        return generated_dna(how.rows, how.seed)
    if how.kind == "generated-newsgroups":
        return corpus(generated_newsgroups(how.rows, how.seed), how.rows, how.seed)
    if how.kind == "generated-antibodies":
        return describe_pairs(generated_antibodies(how.rows, how.seed), jobs)
    smiles = generated_molecules(how.rows, how.seed)
    if how.kind == "generated-guacamol":
        return _describe("guacamol", smiles, jobs)
    table = describe_molecules(smiles, jobs)
    return table.assign(**{DOCKING: made_up_docking_scores(table)}) if how.kind == "generated-docking" else table


def _how(dataset: Dataset) -> Features:
    if dataset.features is None:
        raise PlumblineError(f"dataset {dataset.name!r} has no `features` entry: nothing is built from it")
    return dataset.features


def _like(kind: str) -> str:
    """Return the kind of table that a builder makes."""
    return kind.removeprefix("generated-")


def provenance(dataset: Dataset) -> dict[str, Any]:
    """Return the provenance of a table: the data set's entry and the library that computed or read it.

    Raises:
        PlumblineError: the data set has no `features` entry.
    """
    library = LIBRARIES[_like(_how(dataset).kind)]
    return {"dataset": dataset.model_dump(mode="json"), library: importlib.metadata.version(library)}


def _check(table: pd.DataFrame, kind: str, source: str | Path) -> pd.DataFrame:
    broken = f"{source}: features break their schema: "
    numbers = table.select_dtypes("number")
    for row, column in np.argwhere(~np.isfinite(numbers.to_numpy("float64")))[:1]:
        value, name = numbers.iloc[row, column], numbers.columns[column]
        raise PlumblineError(f"{broken}{name} of row {row} ({str(table.iloc[row, 0])[:40]}) is {value}")
    schema = SCHEMAS.get(_like(kind))
    if schema is None:
        raise PlumblineError(f"{source} is of an unknown kind, {kind[:40]!r}: delete it and run again")
    try:
        checked = schema.validate(table)
    except (pa.errors.SchemaError, pa.errors.SchemaErrors) as error:
        raise PlumblineError(f"{broken}{' '.join(str(error).split())[:300]}") from error
    features = checked[list(DISTINCT.get(_like(kind), ()))]
    for row in np.flatnonzero(features.duplicated())[:1]:
        first = np.flatnonzero((features == features.iloc[row]).all(axis=1))[0]
        raise PlumblineError(
            f"{source}: rows {first} and {row} have the same descriptors, by which a row is found: delete the file and "
            "run again"
        )
    return checked


def write_features(table: pd.DataFrame, path: Path, dataset: Dataset) -> None:
    """Write a checked table to Parquet atomically, with its provenance.

    Raises:
        PlumblineError: the table violates the schema of the data set's kind.
    """
    content = arrow.Table.from_pandas(_check(table, _how(dataset).kind, path), preserve_index=False)
    metadata = {**(content.schema.metadata or {}), METADATA: json.dumps(provenance(dataset)).encode()}
    with files.atomic(path) as part:
        parquet.write_table(content.replace_schema_metadata(metadata), part, write_page_checksum=True)


def read_features(path: Path) -> pd.DataFrame:
    """Return the checked table in a Parquet file.

    Raises:
        PlumblineError: the file is missing, truncated, corrupt, or violates its schema; the message has the remedy.
    """
    table, rests_on = read_table(path)
    return _check(table, rests_on["dataset"]["features"]["kind"], path)
