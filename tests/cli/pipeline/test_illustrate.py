"""The command that computes illustrations."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import check_one_line

from plumbline.store import records
from plumbline.store.provenance import METADATA_KEY
from plumbline.store.spec import TrialSpec

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]


@pytest.mark.slow
def test_an_illustration_is_computed_and_drawn(run: Run, tiny: Path) -> None:
    path, svg = tiny / "i/TINY-I1.parquet", tiny / "f/TINY-I1.svg"
    assert run("illustrate", "TINY-I1", "-o", path)[0] == 0
    first = path.read_bytes()
    both = run("illustrate", "TINY-I1", "TINY-I1", "-o", path, "-o", tiny / "i/again.parquet")
    assert both[0] == 0
    assert (tiny / "i/again.parquet").read_bytes() == first, "whatever is computed before it in the process"
    words = "name an --output for each experiment (got 2 for 1)"
    check_one_line(run("illustrate", "TINY-I1", "-o", path, "-o", "x.parquet"), words)
    about = json.loads(records.read_table(path).schema.metadata[METADATA_KEY.encode()])
    assert {"commit", "packages", "host"} <= about.keys()
    assert run("illustrate", "TINY-I1", "-o", path)[0] == 0
    assert path.read_bytes() == first, "the same table whenever it is asked for"
    assert run("figure", "TINY-I1", "--illustration", path, "-o", svg)[0] == 0
    assert "illustration" in svg.read_text(encoding="utf-8")
    drawn = ("figure", "TINY-I1", "--illustration", path, "-o", svg)
    for metadata, words in (
        (
            {METADATA_KEY: json.dumps(about | {"experiment": "TINY-I2"})},
            "is the illustration of TINY-I2, not of TINY-I1",
        ),
        ({METADATA_KEY: "{"}, "does not say where it comes from"),
        ({METADATA_KEY: "[]"}, "does not say where it comes from"),
    ):
        records.write_table(path, records.read_table(path).replace_schema_metadata(None), metadata)
        check_one_line(run(*drawn), words)


def test_illustrations_that_are_not_there(run: Run, tiny: Path) -> None:
    check_one_line(run("illustrate", "TINY-F1", "-o", "i.parquet"), "TINY-F1 has no illustration")
    check_one_line(run("illustrate", "TINY-F2", "-o", "i.parquet"), "TINY-F2 is not part of preset 'quick'")
    check_one_line(run("figure", "TINY-I1", "-o", "x.svg"), "TINY-I1 has no trial that ended well")
