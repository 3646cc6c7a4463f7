"""What users read when something is wrong."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError, absent_module, describe_os_error, shown, unknown


def test_the_nearest_name_is_suggested() -> None:
    error = unknown("method", "calibrate", ["ucb", "calibrated", "ei"])
    assert isinstance(error, PlumblineError)
    assert str(error) == "unknown method 'calibrate': did you mean 'calibrated'? allowed: calibrated, ei, ucb"


@given(st.lists(st.text("abcK1-", min_size=1), min_size=1, max_size=60, unique_by=str.casefold), st.data())
def test_case_makes_no_difference(names: list[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(names))
    assert f"did you mean {name!r}?" in str(unknown("claim", name.swapcase(), names))


def test_it_says_what_is_counted() -> None:
    names = [f"task-{i}" for i in range(30)]
    assert str(unknown("task", "?", names, are="tasks have runs")).endswith("30 tasks have runs")
    families = unknown("task", "family", names, "plumbline tasks", besides=["families"])
    assert str(families).endswith("did you mean 'families'? 30 are known: `plumbline tasks` lists them")


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


def test_where_else_to_write_is_said_where_it_is_known() -> None:
    error = OSError(errno.EACCES, "no", "/data/x")
    assert describe_os_error(error) == "no permission to write (/data/x): check its owner"
    assert describe_os_error(error, "name another") == f"{describe_os_error(error)}, or name another"


@given(st.sampled_from([errno.EACCES, errno.ENOSPC, errno.EIO, None]), st.none() | st.text() | st.integers())
def test_any_accident_has_a_line(code: int | None, name: str | int | None) -> None:
    error = OSError("text") if code is None else OSError(code, "words", name)
    assert describe_os_error(error).strip()


def test_other_accidents_keep_their_own_words() -> None:
    assert describe_os_error(FileNotFoundError(errno.ENOENT, "No such file", "x")) == "No such file (x)"
    assert describe_os_error(OSError(errno.EIO, "Input/output error")) == "Input/output error"


numpy_scalar = st.sampled_from([np.float64, np.float32, np.int64, np.int8, np.bool_]).flatmap(
    lambda kind: st.integers(0, 1).map(kind)
)
value = st.recursive(
    numpy_scalar | st.floats() | st.integers() | st.none() | st.text() | st.floats().map(np.float64),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner) | st.tuples(inner),
)


@pytest.mark.slow
@given(value)
def test_any_value_is_short_in_one_line_and_without_types_of_numpy(one: object) -> None:
    for found in (shown(one), shown(np.array([one], dtype=object))):
        assert "\n" not in found
        assert len(found) <= 64
        assert not any(f"np.{kind}(" in found for kind in ("float64", "float32", "int64", "int8"))
        assert "np.True_" not in found
        assert "array(" not in found


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (np.float64("nan"), "nan"),
        ("a\n b", r"'a\n b'"),
        ([np.int64(3), {"a": np.float32(0.5)}], "[3, {'a': 0.5}]"),
        (np.array([[1.0, np.inf]]), "[[1.0, inf]]"),
        ("a" * 99, f"'{'a' * 59} ..."),
    ],
)
def test_values_in_words(one: object, words: str) -> None:
    assert shown(one) == words


@pytest.mark.parametrize(
    ("made", "name", "hint"),
    [
        ("mine.py", "mine", True),
        ("mine/of.py", "mine", True),
        ("other.py", "mine", False),
        ("mine/of.py", "mine.off", False),
    ],
)
def test_a_module_in_the_working_directory_is_said_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str, name: str, hint: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(made).parent.mkdir(exist_ok=True)
    Path(made).touch()
    said = absent_module(name)
    assert said.startswith(f"there is no module {name!r} on Python's path")
    assert said.endswith("it is in this folder, so set PYTHONPATH=.") == hint
