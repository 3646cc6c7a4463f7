"""Artifacts of runs."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from plumbline.store.folder import TrialFolder
from plumbline.tracking.artifacts import put, trial_files


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "store" / "records.parquet"
    path.parent.mkdir()
    path.write_text("a record")
    return path


def test_a_file_of_the_store_takes_no_space_twice(source: Path, tmp_path: Path) -> None:
    put({"records.parquet": source, "inner/curves.svg": "<svg/>"}, tmp_path / "run")
    assert (tmp_path / "run/records.parquet").samefile(source)
    assert (tmp_path / "run/inner/curves.svg").read_text() == "<svg/>"


def test_the_store_is_never_written_into(source: Path, tmp_path: Path) -> None:
    put({"records.parquet": source}, tmp_path / "run")
    put({"records.parquet": "another text"}, tmp_path / "run")
    assert source.read_text() == "a record"
    assert (tmp_path / "run/records.parquet").read_text() == "another text"


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOSYS, errno.EACCES])
def test_where_no_file_can_be_shared_it_is_copied(
    code: int, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(os, "link", refuse)
    put({"records.parquet": source}, tmp_path / "run")
    assert (tmp_path / "run/records.parquet").read_text() == "a record"
    assert not (tmp_path / "run/records.parquet").samefile(source)


def test_a_full_disk_is_said(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(shutil, "copyfile", refuse)
    with pytest.raises(OSError, match="no space"):
        put({"records.parquet": source}, tmp_path / "run")


def test_files_of_a_trial(source: Path) -> None:
    folder = TrialFolder(source.parent.parent, source.parent.name)
    assert trial_files(folder) == {"records.parquet": source}
