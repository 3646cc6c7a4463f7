"""The list of data sets in `config/datasets.yaml`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.options import Options, parse
from plumbline.core.strict_yaml import read_yaml

Kind = Literal[
    "molecules",
    "docking",
    "antibodies",
    "smiles",
    "guacamol",
    "generated-molecules",
    "generated-docking",
    "generated-antibodies",
    "generated-guacamol",
    "dna",
    "generated-dna",
    "newsgroups",
    "generated-newsgroups",
]


class Features(Options):
    """The construction of a data set's table of features.

    Attributes:
        kind: the builder.
        member: a file inside an archive.
        rows: number of rows.
        seed: seed of the draw or the generation of rows.
    """

    kind: Kind
    member: str | None = None
    rows: PositiveInt
    seed: int = Field(default=0, ge=0)


class Dataset(Options):
    """A data set.

    Attributes:
        name: its key, which need not be repeated.
        title: description of the data set.
        file: file name (neither `.` nor `..`) in `data/raw` and in a mirror; null for generated data.
        url: address of the download; null if the data have no public address of their own.
        hash: sha256 in hex, or `algorithm:hex`; null only where no checksum is published, which the note says.
        note: further remarks.
        licence: licence of the data.
        citation: citation of the data.
        stands_in_for: the data set that it replaces in runs on generated data.
        features: construction of its table of features; null for files that trainers read directly.
    """

    name: str = ""
    title: str
    file: str | None = Field(default=None, pattern=r"^([^/.]|\.[^/.]|\.\.[^/])[^/]*$")
    url: str | None = None
    hash: str | None = Field(default=None, pattern=r"^((sha256:)?[0-9a-f]{64}|md5:[0-9a-f]{32})$")
    note: str = ""
    licence: str
    citation: str
    stands_in_for: str | None = None
    features: Features | None = None


def load_datasets(path: Path) -> dict[str, Dataset]:
    """Return the data sets listed in a YAML file, by name.

    Raises:
        PlumblineError: the file does not exist, is not YAML, or has a typo; the message names data set and field.
    """
    entries = read_yaml(path)
    if not isinstance(entries, dict):
        raise PlumblineError(f"{path}: not a mapping of names to datasets")
    datasets = {name: _dataset(name, entry, f"{path}: {name}") for name, entry in entries.items()}
    for name, dataset in datasets.items():
        if dataset.stands_in_for is not None and dataset.stands_in_for not in datasets:
            raise PlumblineError(
                f"{path}: {name}: stands_in_for: {unknown('dataset', dataset.stands_in_for, datasets)}"
            )
    return datasets


def _dataset(name: str, entry: Any, source: str) -> Dataset:
    return parse(Dataset, {**entry, "name": name} if isinstance(entry, dict) else entry, source)


def dataset_for(output: Path, datasets: Mapping[str, Dataset], name: str) -> Dataset:
    """Return the data set called `name`, whose table is to be written to `output`.

    Raises:
        PlumblineError: there is no such data set, or the file is named after another one, which readers would refuse.
    """
    dataset = find_dataset(datasets, name)
    if output.stem in datasets and output.stem != name:
        raise PlumblineError(f"{output} is the name of features of {output.stem!r}, not of {name!r}: give another name")
    return dataset


def find_dataset(datasets: Mapping[str, Dataset], name: str) -> Dataset:
    """Return the data set called `name`.

    Raises:
        PlumblineError: there is none, with the nearest name.
    """
    if name not in datasets:
        raise unknown("dataset", name, datasets)
    return datasets[name]
