"""The list of datasets, `config/datasets.yaml`, as data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field, PositiveInt

from plumbline.errors import PlumblineError, unknown
from plumbline.options import Options, parse


class Features(Options):
    """How a dataset becomes a table: the builder, how many rows of it, and the seed they are drawn or made with."""

    kind: Literal["molecules", "generated-molecules"]
    member: str | None = None
    rows: PositiveInt
    seed: int = Field(default=0, ge=0)


class Dataset(Options):
    """One dataset; see the head of `config/datasets.yaml` for the fields."""

    name: str = ""
    title: str
    file: str | None = None
    url: str | None = None
    hash: str | None = None
    note: str = ""
    licence: str
    citation: str
    stands_in_for: str | None = None
    features: Features | None = None


def load_datasets(path: Path) -> dict[str, Dataset]:
    """Return the datasets listed in a YAML file, by name.

    Raises:
        PlumblineError: a typo, with file, dataset and field.
    """
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise PlumblineError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    return {name: parse(Dataset, {**entry, "name": name}, f"{path}: {name}") for name, entry in entries.items()}


def find_dataset(datasets: Mapping[str, Dataset], name: str) -> Dataset:
    """Return the dataset called `name`; raise PlumblineError with the nearest name if there is none."""
    if name not in datasets:
        raise unknown("dataset", name, datasets)
    return datasets[name]
