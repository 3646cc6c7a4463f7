"""Who waits for a lock, and what is said."""

import os
import platform
import threading
import time
from pathlib import Path

import pytest

from plumbline.core import locks
from plumbline.core.locks import locked, locked_folder


def test_who_waits_says_for_whom_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.05)
    path, done = tmp_path / "store" / ".lock", threading.Event()

    def wait() -> None:
        with locked(path, "runs this trial"):
            done.set()

    with locked(path, "runs this trial"):
        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.3)
        assert not done.is_set()
    waiting.join(20)
    assert done.is_set()
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"plumbline: waiting for process {os.getpid()} on host {platform.node()}, which runs this trial ({path})"
    )
    assert [one.name for one in path.parent.iterdir()] == [".lock"], "no note is left"


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
def test_an_owner_that_is_not_known_is_another_process(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / ".lock.owner").write_bytes(content)
    assert locks._owner(tmp_path / ".lock.owner") == "another process"


def test_a_folder_has_one_lock_by_whatever_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "atlas" / "inner").mkdir(parents=True)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "link").symlink_to(tmp_path / "atlas")
    asked = list[Path]()
    monkeypatch.setattr(locks, "locked", lambda path, _: asked.append(path))
    monkeypatch.chdir(tmp_path / "atlas" / "inner")
    for name in ("..", tmp_path / "atlas", tmp_path / "links" / "link", "../../atlas", "."):
        locked_folder(Path(name), "adds")
    assert asked == [tmp_path / ".atlas.lock"] * 4 + [tmp_path / "atlas" / ".inner.lock"]


def test_who_need_not_wait_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked(tmp_path / ".lock", "runs this trial"):
        pass
    assert capsys.readouterr().err == ""
