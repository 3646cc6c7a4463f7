"""The command that makes all outputs of an experiment."""

from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.store.spec import TrialSpec

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]


@pytest.mark.slow
def test_outputs_are_what_its_three_commands_make(run: Run, collected: Path) -> None:
    apart, whole = collected / "apart", collected / "whole"
    assert run("collect", "TINY-T1", "-o", apart / "T1.parquet", "--snapshots", apart / "T1-s.parquet")[0] == 0
    assert run("table", "TINY-T1", "--records", apart / "T1.parquet", "-o", apart / "T1.csv")[0] == 0
    assert run("collect", "TINY-F1", "-o", apart / "F1.parquet", "--snapshots", apart / "F1-s.parquet")[0] == 0
    files = ("--records", apart / "F1.parquet", "--snapshots", apart / "F1-s.parquet")
    assert run("figure", "TINY-F1", *files, "-o", apart / "F1.svg", "-o", apart / "F1.pdf")[0] == 0
    assert run("figure", "TINY-I1", "--illustration", "i/TINY-I1.parquet", "-o", apart / "I1.svg")[0] == 0
    (whole / "illustrations").mkdir(parents=True)
    (whole / "illustrations/TINY-I1.parquet").write_bytes((collected / "i/TINY-I1.parquet").read_bytes())
    for name in ("TINY-T1", "TINY-F1", "TINY-I1"):
        assert run("outputs", name, "--folder", whole) == (0, "", "")
    assert {str(path.relative_to(whole)) for path in whole.rglob("*") if path.is_file()} == {
        "illustrations/TINY-I1.parquet",
        *(f"{kind}/TINY-{name}.parquet" for kind in ("records", "snapshots") for name in ("T1", "F1")),
        *(f"figures/TINY-{name}.{ending}" for name in ("F1", "I1") for ending in ("svg", "pdf", "png")),
        "tables/TINY-T1.csv",
    }
    for one, other in (
        ("T1.parquet", "records/TINY-T1.parquet"),
        ("F1-s.parquet", "snapshots/TINY-F1.parquet"),
        ("T1.csv", "tables/TINY-T1.csv"),
        ("F1.svg", "figures/TINY-F1.svg"),
        ("F1.pdf", "figures/TINY-F1.pdf"),
        ("I1.svg", "figures/TINY-I1.svg"),
    ):
        assert (apart / one).read_bytes() == (whole / other).read_bytes(), other
