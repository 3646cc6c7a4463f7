"""Files are whole or not there."""

import errno
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.core.files import atomic, write_text


def test_a_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file.txt"
    with atomic(path) as part:
        part.write_text("whole")
        assert not path.exists()
        assert part.parent == path.parent, "a rename is atomic on one file system only"
    assert path.read_text() == "whole"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt(), SystemExit(1), ValueError()])
def test_after_an_error_all_is_as_it_was(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write() -> None:
        with atomic(path) as part:
            part.write_text("half")
            raise error

    with pytest.raises(type(error)):
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_rename_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        with pytest.raises(OSError, match="full"):
            write_text(tmp_path / "file.txt", "text")
    assert not list(tmp_path.iterdir())


def test_others_may_read(tmp_path: Path) -> None:
    write_text(tmp_path / "file.txt", "text")
    assert stat.S_IMODE((tmp_path / "file.txt").stat().st_mode) == 0o644


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")))
def test_text_round_trips(tmp_path: Path, text: str) -> None:
    write_text(tmp_path / "file.txt", text)
    assert (tmp_path / "file.txt").read_text(encoding="utf-8") == text
