"""SMAC."""

import gc
import tempfile
import warnings
from pathlib import Path

import pytest
from peers_cases import installed, on_a_hill
from situations import ask, box


@pytest.mark.slow
def test_smac_leaves_no_files_and_warns_of_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        ask(installed("smac", {}, box()), on_a_hill(6), 1)
        gc.collect()
    assert list(tmp_path.iterdir()) == []
