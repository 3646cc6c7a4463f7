"""A features file small enough for any test, and the context that problems are built in."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from plumbline.data.datasets import Dataset
from plumbline.data.features import write_features
from plumbline.data.molecules import DESCRIPTORS, TARGETS
from plumbline.problems.base import Context


@pytest.fixture(scope="session")
def molecule_table() -> pd.DataFrame:
    """Forty made-up rows; one column without spread, as radical electrons are in real data."""
    rng = np.random.default_rng(0)
    columns = [*DESCRIPTORS, *TARGETS]
    table = pd.DataFrame(rng.standard_normal((40, len(columns))), columns=columns)
    table["num_radical_electrons"] = 0.0
    table["qed"] = rng.uniform(size=40)
    table["sa"] = rng.uniform(1, 10, size=40)
    table.insert(0, "smiles", ["C" * (i + 1) for i in range(40)])
    return table


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory, molecule_table: pd.DataFrame) -> Path:
    """A data folder with the features of one dataset, `small-molecules`."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "features").mkdir()
    dataset = Dataset(name="small-molecules", title="for tests", licence="none", citation="none")
    write_features(molecule_table, folder / "features" / "small-molecules.parquet", dataset)
    return folder


@pytest.fixture
def context(data_folder: Path) -> Callable[[int], Context]:
    """Return a context whose generator has the given seed."""
    return lambda seed: Context(data=data_folder, generator=torch.Generator().manual_seed(seed))
