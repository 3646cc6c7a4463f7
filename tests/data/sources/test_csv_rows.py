"""Rows of a csv file: what is a row, what is left out, and what is said of it."""

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.data.sources.csv_rows import csv_rows, listed

COLUMNS = {"a": "a", "B": "b"}


def read(path: Path, content: bytes) -> tuple[list[dict[str, str]], list[tuple[str, str]]]:
    path.write_bytes(content)
    rows, bad = csv_rows(path, COLUMNS, "no table of tests")
    return list(rows.values()), bad


@pytest.mark.parametrize(
    "content",
    [
        b"a,B\n1,2\n",
        b"a,B\r\n1,2\r\n",
        b"a,B\r1,2",
        b"\xef\xbb\xbfa,B\n1,2\n",
        b"B,more,a\n2,x,1\n",
        b'"a","B"\n"1","2"\n',
        b" a , B \n1, 2\n",
        b"a,B\n\n1,2\n,\n   \n",
        b'"{""Run"": 1, ""By"": ""us, all""}"\na,B\n1,2\n',
        b'{"Run":1,"By":"us, all"}\na,B\n1,2\n',
        b'a,B,c\n1,2,"x, ""y""\nz"\n',
    ],
)
def test_one_row_in_many_layouts(tmp_path: Path, content: bytes) -> None:
    assert read(tmp_path / "t.csv", content) == ([{"a": "1", "b": "2"}], [])
    assert read(tmp_path / "t.csv.gz", gzip.compress(content)) == ([{"a": "1", "b": "2"}], [])


def test_a_bad_row_is_listed_and_costs_no_other(tmp_path: Path) -> None:
    content = b'a,B\n1,2\n3\n4,5,6\n"7,8\n9,10\n"11"x,12\n13,14\n'
    rows, bad = read(tmp_path / "t.csv", content)
    assert [row["a"] for row in rows] == ["1", "9", "13"]
    assert [where for where, _ in bad] == ["line 3", "line 4", "line 5", "line 7"]
    assert [why for _, why in bad[:2]] == ["1 cells, not 2", "3 cells, not 2"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "t.csv has no column a: it is no table of tests"),
        (b"a,C\n1,2\n", "t.csv has no column b"),
        (b"a,B,a\n1,2,3\n", "t.csv has 2 columns a"),
        (b"<!DOCTYPE html>\n<p>a,B</p>", "t.csv is a web page"),
        (b"x" * 200_000, "t.csv has no column a"),
    ],
)
def test_another_file_is_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(PlumblineError, match=said) as error:
        read(tmp_path / "t.csv", content)
    assert "\n" not in str(error.value)


@given(st.lists(st.tuples(st.text(), st.text()), max_size=6))
def test_what_python_writes_is_read(tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, str]]) -> None:
    """Cells of any text but surrogates, with its line ends made equal and without blanks at its ends."""

    def plain(text: str) -> str:
        return text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n").strip()

    stream = io.StringIO()
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "B"), *cells])
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    rows, bad = read(path, stream.getvalue().encode("utf-8", "replace"))
    assert [(row["a"], row["b"]) for row in rows] == [(plain(a), plain(b)) for a, b in cells]
    assert bad == []


def test_what_is_listed_is_short() -> None:
    assert listed([]) == ""
    assert listed(["a\nb", "c"]) == " (a b; c)"
    assert listed(["x" * 99] * 9) == f" ({'; '.join(['x' * 60] * 5)}; ...)"
