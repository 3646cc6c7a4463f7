"""What users read when something is wrong."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError, describe_os_error, unknown


def test_the_nearest_name_is_suggested() -> None:
    error = unknown("method", "calibrate", ["ucb", "calibrated", "ei"])
    assert isinstance(error, PlumblineError)
    assert str(error) == "unknown method 'calibrate': did you mean 'calibrated'? allowed: calibrated, ei, ucb"


def test_nothing_is_suggested_where_nothing_is_near() -> None:
    assert str(unknown("method", "zzz", ["ucb", "ei"])) == "unknown method 'zzz': allowed: ei, ucb"


def test_a_part_of_a_name_is_recognised_where_no_name_is_near() -> None:
    tasks = ["constrained-gramacy-at-length", "constrained-gramacy", "branin"]
    assert "did you mean 'constrained-gramacy'?" in str(unknown("task", "gramacy", tasks))
    assert "did you mean" not in str(unknown("task", "", tasks))


def test_nothing_is_allowed() -> None:
    assert str(unknown("method", "ei", [])).startswith("unknown method 'ei'")


@given(st.sampled_from(["random", "calibrated", "six-hump-camel"]), st.integers(0, 30), st.characters())
def test_a_slip_of_one_character_is_recognised(name: str, place: int, slip: str) -> None:
    place %= len(name)
    typo = name[:place] + slip + name[place + 1 :]
    assert f"did you mean {name!r}?" in str(unknown("thing", typo, ["random", "calibrated", "six-hump-camel"]))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk(code: int) -> None:
    line = describe_os_error(OSError(code, "No space left on device", "/data/x"))
    assert line == "disk full (/data/x): free some space and run the same command again; completed work is kept"


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_no_permission(code: int) -> None:
    line = describe_os_error(OSError(code, "no", "/data/x"))
    assert line.startswith("no permission to write (/data/x): check its owner")


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM])
def test_what_may_not_be_read_is_not_what_may_not_be_written(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("{}")
    assert "no permission to write" in describe_os_error(OSError(code, "no", str(path)))
    monkeypatch.setattr(os, "access", lambda asked, mode: not (asked == path and mode == os.R_OK))
    line = describe_os_error(OSError(code, "no", str(path)))
    assert line.startswith(f"no permission to read ({path}): it may not be read")
    assert "no permission to write" in describe_os_error(OSError(errno.EROFS, "no", str(path)))
    monkeypatch.setattr(os, "access", lambda asked, mode: not (asked == tmp_path and mode == os.X_OK))
    assert "no permission to read" in describe_os_error(OSError(code, "no", str(tmp_path / "unseen/config.yaml")))


def test_the_command_line_names_a_store_by_its_option() -> None:
    assert "--store" in describe_os_error(OSError(errno.EACCES, "no", "/data/x"))


@given(st.sampled_from([errno.EACCES, errno.ENOSPC, errno.EIO, None]), st.none() | st.text() | st.integers())
def test_any_accident_has_a_line(code: int | None, name: str | int | None) -> None:
    error = OSError("text") if code is None else OSError(code, "words", name)
    assert describe_os_error(error).strip()


def test_other_accidents_keep_their_own_words() -> None:
    assert describe_os_error(FileNotFoundError(errno.ENOENT, "No such file", "x")) == "No such file (x)"
    assert describe_os_error(OSError(errno.EIO, "Input/output error")) == "Input/output error"
