"""The command that collects the records of an experiment."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as compute
import pytest
from command_line import check_one_line

from plumbline.store import records
from plumbline.store.spec import TrialSpec

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]


@pytest.mark.slow
def test_a_grid_with_holes_is_refused(run: Run, collected: Path) -> None:
    (path,) = (collected / "results/trials/branin/dice").iterdir()
    table = records.read_table(path)
    records.write_table(path, table.filter(compute.equal(table["seed"], 1)))
    outputs = ("-o", "r.parquet", "--snapshots", "s.parquet")
    check_one_line(run("collect", "TINY-T1", *outputs), "1 of 2 trials are missing, the first: branin dice seed 0")
    assert not (collected / "r.parquet").exists()
