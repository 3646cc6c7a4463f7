"""What GuacaMol's objectives cost."""

import os
from pathlib import Path

import pytest

from plumbline.data.sources.guacamol import OBJECTIVES, score_smiles, score_table
from plumbline.data.sources.molecules import read_smiles


@pytest.fixture(scope="module")
def molecules():
    path = Path(os.environ.get("PLUMBLINE_MIRROR", "/nowhere")) / "guacamol_10k.smiles"
    if not path.is_file():
        pytest.skip("needs PLUMBLINE_MIRROR with guacamol_10k.smiles")
    return read_smiles(path)[:1000]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_scoring_1000_molecules(benchmark, name, molecules):
    """Required: 2 s at most, parsing included."""
    benchmark(score_smiles, OBJECTIVES[name], molecules)


def test_scoring_1000_molecules_by_all_objectives(benchmark, molecules):
    """What nine objectives share is computed once: far less than nine times as long."""
    benchmark(score_table, molecules)
