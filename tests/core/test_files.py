"""Files are whole or not there."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from plumbline.core.errors import PlumblineError
from plumbline.core.files import (
    atomic,
    csv_text,
    read_csv,
    read_json,
    read_sealed,
    reading,
    set_aside,
    write_sealed,
    write_text,
)


@pytest.mark.parametrize("place", ["before", "in", "after"])
def test_an_error_of_the_machine_names_the_file_that_was_asked_for(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "no", str(path))

    path = tmp_path / "x.csv"
    if place != "in":
        monkeypatch.setattr(Path, {"before": "touch", "after": "replace"}[place], refuse)
    with pytest.raises(PermissionError) as caught, atomic(path) as part:
        (refuse if place == "in" else Path.exists)(part)
    assert caught.value.filename == str(path)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(PermissionError, match="other"), atomic(path):
        refuse(Path("other"))


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


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_access_is_what_the_user_gives_to_new_files(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_text(tmp_path / "file.txt", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file.txt").stat().st_mode) == mode


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")))
def test_text_round_trips(tmp_path: Path, text: str) -> None:
    write_text(tmp_path / "file.txt", text)
    assert (tmp_path / "file.txt").read_text(encoding="utf-8") == text


damage = st.tuples(st.integers(0, 10_000), st.integers(1, 255))


def flipped(content: bytes, where: int, by: int) -> bytes:
    """`content` with one byte changed."""
    at = where % len(content)
    return content[:at] + bytes([content[at] ^ by]) + content[at + 1 :]


def error_of(holds: Callable[[], bool]) -> str | None:
    """The words of the PlumblineError that a call raises; None if it raises none, and then its result must be true."""
    try:
        right = holds()
    except PlumblineError as error:
        return str(error)
    assert right
    return None


class TestSealedFiles:
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
    @given(content=st.binary(max_size=99))
    def test_they_round_trip(self, tmp_path: Path, content: bytes) -> None:
        write_sealed(tmp_path / "x", content)
        assert read_sealed(tmp_path / "x") == content

    @pytest.mark.slow
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
    @given(content=st.binary(max_size=99), where=damage, cut=st.integers(1, 10_000))
    def test_no_other_bytes_are_read(self, tmp_path: Path, content: bytes, where: tuple[int, int], cut: int) -> None:
        path = tmp_path / "x"
        write_sealed(path, content)
        whole = path.read_bytes()
        for other in (flipped(whole, *where), whole[: cut % len(whole)], whole + b"\n", content):
            path.write_bytes(other)
            with pytest.raises(PlumblineError, match="checksum"):
                read_sealed(path)


class TestDamagedFiles:
    def test_what_is_set_aside_is_never_overwritten(self, tmp_path: Path) -> None:
        for text in ("one", "two", "three"):
            (tmp_path / "x.pt").write_text(text)
            set_aside(tmp_path / "x.pt")
        names = ("x.pt.damaged", "x.pt.damaged-2", "x.pt.damaged-3")
        assert [(tmp_path / name).read_text() for name in names] == ["one", "two", "three"]

    def test_it_is_said_in_one_line(self, tmp_path: Path) -> None:
        for name in ("x", "beside"):
            (tmp_path / name).write_text("y")
        words = r"x cannot be read \(bad luck\), kept as x.damaged and beside"
        besides = (tmp_path / "beside", tmp_path / "not-there")
        with pytest.warns(UserWarning, match=words) as caught, reading(tmp_path / "x", "we go on", *besides):
            raise ValueError("bad\nluck")
        assert str(caught[0].message).endswith(": we go on")
        assert "\n" not in str(caught[0].message)

    @pytest.mark.parametrize("error", [MemoryError(), OSError(errno.EIO, "the disk"), KeyboardInterrupt()])
    def test_what_the_machine_does_is_no_damage(self, tmp_path: Path, error: BaseException) -> None:
        (tmp_path / "x").write_text("y")
        with pytest.raises(type(error)), reading(tmp_path / "x", "we go on"):
            raise error
        assert (tmp_path / "x").read_text() == "y"


class TestJson:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "no JSON"),
            (b'{"a": 1', "no JSON"),
            (b'{"a": "\xff"}', "no JSON"),
            (b"[" * 100_000, "no JSON"),
            (b"[1]", "no mapping"),
            (b"null", "no mapping"),
            (b'{"b": 1}', "has no 'a'"),
        ],
    )
    def test_damage_is_one_line(self, tmp_path: Path, content: bytes, words: str) -> None:
        path = tmp_path / "x.json"
        path.write_bytes(content)
        with pytest.raises(PlumblineError, match=words) as caught:
            read_json(path, ["a"], "make it again")
        message = str(caught.value)
        assert str(path) in message
        assert message.endswith(": make it again")
        assert "\n" not in message

    @pytest.mark.slow
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
    @given(where=damage, cut=st.integers(0, 10_000))
    def test_any_damage_is_one_line_or_a_mapping(self, tmp_path: Path, where: tuple[int, int], cut: int) -> None:
        whole = b'{"spec": {"seed": 1, "name": "branin"}, "wall": 1.5}\n'
        for content in (flipped(whole, *where), whole[: cut % len(whole)]):
            (tmp_path / "x.json").write_bytes(content)
            error = error_of(lambda: isinstance(read_json(tmp_path / "x.json"), dict))
            assert error is None or "x.json" in error

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(PlumblineError, match=r"no file .*x\.json: run it"):
            read_json(tmp_path / "x.json", remedy="run it")


class TestCsv:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (b"", "is empty"),
            (b"\n \n", "is empty"),
            (b"a,b\n1,2\n3,4,5\n", "line 3: 3 cells, and the header has 2"),
            (b"a,b\n\nx,1,2\ny,3,4\n", "line 3: 3 cells, and the header has 2"),
            (b"a,b,a\n1,2,3\n", "has two columns 'a'"),
            (b'a,b\n1,2\n"x,1.25\n', "line 3: no row of a CSV file"),
            (b"a;b\n1,5;2,5\n", "semicolons between its columns, and not commas"),
            (b"a,b\n1,\xff\n", "is not text in UTF-8, as a CSV file is"),
            (b"a,b\n1,\0\n", "is not text, as a CSV file is"),
            (b"a;b\n1,5;2\n", "semicolons between its columns, and not commas"),
            (b"a\tb\n1\t2\n", "tabs between its columns"),
            (b"a,c\n1,2\n", "has no column 'b'"),
            (b"a,b\nx,1.25\ny,0.1", "cut off"),
            (b"a,b\nx,1.25\ny,\n", "line 3: b is nan, not a number"),
            (b"a,b\nx,1.25\ny,z\n", "line 3: b is z, not a number"),
            (b"a,b\nx,inf\n", "line 2: b is inf, not a number"),
        ],
    )
    def test_damage_is_one_line(self, tmp_path: Path, text: bytes, words: str) -> None:
        path = tmp_path / "x.csv"
        path.write_bytes(text)
        with pytest.raises(PlumblineError, match=words) as caught:
            read_csv(path, ["a"], ["b"], "make it again")
        assert str(path) in str(caught.value)
        assert str(caught.value).endswith(": make it again")
        assert "\n" not in str(caught.value)

    @pytest.mark.slow
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    @given(where=damage, cut=st.integers(0, 10_000))
    def test_any_damage_is_one_line_or_numbers(self, tmp_path: Path, where: tuple[int, int], cut: int) -> None:
        whole = b'task,seconds\n"a, b",0.25\nc,1e-3\n'
        for content in (flipped(whole, *where), whole[: cut % len(whole)]):
            (tmp_path / "x.csv").write_bytes(content)
            error = error_of(lambda: read_csv(tmp_path / "x.csv", numbers=["seconds"])["seconds"].notna().all())
            assert error is None or "x.csv" in error

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    @given(content=st.binary(max_size=60), start=st.sampled_from([b"", b"\x80", b"\xff\xfe", b"PK\x03\x04", b"\0"]))
    def test_any_bytes_are_text_or_refused_in_plain_words(self, tmp_path: Path, content: bytes, start: bytes) -> None:
        (tmp_path / "x.csv").write_bytes(start + content)
        error = error_of(lambda: isinstance(csv_text(tmp_path / "x.csv"), str))
        assert error is None or error.endswith(
            ("is not text, as a CSV file is", "is not text in UTF-8, as a CSV file is")
        )
        if start in (b"\x80", b"\xff\xfe", b"\0"):
            assert error

    def test_a_byte_order_mark_is_no_part_of_a_name(self, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_bytes(b"\xef\xbb\xbfa,b\r\n1,2\r\n")
        assert list(read_csv(tmp_path / "x.csv", ["a"], ["b"])) == ["a", "b"]

    def test_a_whole_table_is_read(self, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_text("a,b\nx,1.5\n")
        assert read_csv(tmp_path / "x.csv", ["a"], ["b"]).to_dict("list") == {"a": ["x"], "b": [1.5]}
        with pytest.raises(PlumblineError, match=r"no file .*y\.csv: write it again"):
            read_csv(tmp_path / "y.csv")
        (tmp_path / "x.json").write_text('\n{"experiment": [1, 2]}\n')
        with pytest.raises(PlumblineError, match="is JSON, and not a CSV file: write it again"):
            read_csv(tmp_path / "x.json")
        with pytest.raises(PlumblineError, match="is a folder, not a CSV file: write it again"):
            read_csv(tmp_path)

    @pytest.mark.slow
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    @given(word=st.from_regex(r"[0-9]{12}|[0-9]{8}e[0-9]{3}|0[0-9]|true|inf", fullmatch=True))
    def test_words_that_look_like_numbers_stay_words(self, tmp_path: Path, word: str) -> None:
        (tmp_path / "x.csv").write_text(f"task,commit,seeds\n{word},{word},2\n{word},,3\n")
        found = read_csv(tmp_path / "x.csv", numbers=["seeds"])
        assert found["task"].tolist() == [word, word]
        assert found["commit"].iloc[0] == word
        assert found["commit"].isna().iloc[1]
        assert found["seeds"].sum() == 5

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    @given(words=st.lists(st.sampled_from(["null", "nan", "NaN", "NA", "None", "n/a", "NULL", "<NA>", "1", "", "x y"])))
    def test_words_for_nothing_stay_words(self, tmp_path: Path, words: list[str]) -> None:
        rows = "".join(f"{word},{number}\n" for number, word in enumerate(words))
        (tmp_path / "x.csv").write_text(f"task,seeds\n{rows}")
        found = read_csv(tmp_path / "x.csv", ["task"], ["seeds"])
        assert found["task"].fillna("").tolist() == words
        assert found["seeds"].tolist() == [*range(len(words))]

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    @given(
        before=st.lists(st.sampled_from(["x,1", '"a\nb",2', '"a\n\nb", 3', "", " ", "\t"]), max_size=9),
        wrong=st.sampled_from(["x,high", "x,", "x", ",,", "x,inf", "x,1,2", '"a\nb",1,2']),
        after=st.lists(st.sampled_from(["x,1", ""]), max_size=3),
    )
    def test_the_line_is_that_of_an_editor(
        self, tmp_path: Path, before: list[str], wrong: str, after: list[str]
    ) -> None:
        start = ["task,b", *before]
        (tmp_path / "x.csv").write_text("\n".join([*start, wrong, *after, ""]))
        line = 1 + sum(1 + one.count("\n") for one in start)
        with pytest.raises(PlumblineError, match=rf"x\.csv(, line {line}:| is no table)") as caught:
            read_csv(tmp_path / "x.csv", ["task"], ["b"])
        assert wrong == ",," or f"line {line}: " in str(caught.value)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    @given(width=st.integers(1, 4), rows=st.lists(st.integers(1, 5), min_size=1, max_size=5))
    def test_no_row_is_shifted_or_cut(self, tmp_path: Path, width: int, rows: list[int]) -> None:
        cells = [[f"{row}.{column}" for column in range(size)] for row, size in enumerate(rows)]
        text = "".join(",".join(row) + "\n" for row in [list("abcd"[:width]), *cells])
        (tmp_path / "x.csv").write_text(text)
        wide = max(rows) > width
        error = error_of(
            lambda: (
                read_csv(tmp_path / "x.csv").fillna(-1).to_numpy().tolist()
                == [[*map(float, row), *[-1.0] * (width - len(row))] for row in cells]
            )
        )
        assert (error is not None) == wide

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    @given(
        st.lists(
            st.tuples(
                st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1).map(str.lstrip),
                st.integers(-(2**40), 2**40),
                st.booleans(),
                st.one_of(st.none(), st.integers(-99, 99).map(lambda number: number / 8)),
            ),
            min_size=1,
        )
    )
    def test_what_is_written_is_read(self, tmp_path: Path, rows: list[tuple[str, int, bool, float | None]]) -> None:
        table = pd.DataFrame(rows, columns=["task", "seeds", "holds", "seconds"]).astype({"seconds": float})
        table["task"] = table["task"].where(table["task"] != "")
        table.to_csv(tmp_path / "x.csv", index=False)
        assert_frame_equal(read_csv(tmp_path / "x.csv", ["task"], ["seeds"]), table, check_dtype=False)
        dtypes = read_csv(tmp_path / "x.csv").dtypes.astype(str).to_dict()
        assert dtypes == {"task": "str", "seeds": "int64", "holds": "bool", "seconds": "float64"}
