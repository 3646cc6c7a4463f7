"""Tables: words wrap, numbers stay whole, and pipes get whole lines."""

from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.cli.tables import UNLIMITED, print_frame, table_lines, terminal_width, written

HEADERS = ["task", "a rather long name of a method", "95% interval"]
ROWS = [["common-ackley-10-0.0", "-0.00412", "-0.0685 to -0.00649"], ["levy", "12.5", "–"]]
NUMBERS = HEADERS[1:]


@given(st.integers(1, 120))
def test_no_number_is_ever_cut(columns: int) -> None:
    text = "\n".join(table_lines(HEADERS, ROWS, NUMBERS, columns))
    for row in ROWS:
        assert all(number in text for number in row[1:])


@pytest.mark.parametrize("columns", [50, 60, 80, 120])
def test_a_table_is_as_wide_as_the_terminal(columns: int) -> None:
    lines = table_lines(HEADERS, ROWS, NUMBERS, columns)
    assert max(map(len, lines)) <= columns


def test_wide_enough_each_row_is_a_line() -> None:
    head, *lines = table_lines(HEADERS, ROWS, NUMBERS, UNLIMITED)
    assert head.split("  ")[0] == "task"
    assert len(lines) == len(ROWS)
    assert lines[1].startswith("levy ")
    assert lines[1].endswith("–")


def test_names_wrap_at_their_hyphens() -> None:
    lines = table_lines(["task", "n"], [["common-ackley-10-0.0", "7"]], ["n"], 18)
    assert [line.split()[0] for line in lines[1:]] == ["common-", "ackley-10-0.0"]


def test_sentences_wrap_before_names() -> None:
    sentence = "Ackley's function in ten dimensions, with noise"
    lines = table_lines(["task", "title", "n"], [["common-ackley-10-0.0", sentence, "7"]], ["n"], 50)
    assert lines[1].startswith("common-ackley-10-0.0  Ackley's")
    assert len(lines) == 3


def test_a_pipe_is_as_wide_as_it_takes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert terminal_width() == UNLIMITED
    frame = pd.DataFrame({"name": ["x" * 300], "rounds_in_all": [12], "value": [0.123456789]})
    print_frame(frame)
    assert capsys.readouterr().out.splitlines()[1].split() == ["x" * 300, "12", "0.1235"]
    print_frame(frame, csv=True)
    assert capsys.readouterr().out.splitlines() == ["name,rounds_in_all,value", f"{'x' * 300},12,0.123457"]
    monkeypatch.setenv("COLUMNS", "70")
    assert terminal_width() == 70


@pytest.mark.parametrize(("asked", "width"), [(asked, UNLIMITED) for asked in ("0", "²", "-3", "w", "")] + [("1", 1)])
def test_odd_widths(asked: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", asked)
    assert terminal_width() == width
    assert table_lines(HEADERS, ROWS, NUMBERS, width)


def test_a_terminal_that_does_not_know_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda *_: SimpleNamespace(columns=0))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(fileno=lambda: 1))
    assert terminal_width() == 80


def test_values_in_words() -> None:
    assert [written(value) for value in (True, False, 1.23456, float("nan"), float("inf"), 7, "x")] == [
        "yes", "", "1.235", "–", "–", "7", "x",
    ]  # fmt: skip


def test_sentences_that_would_be_narrow_stand_below_their_rows() -> None:
    title = "Selfies VAE: Fexofenadine MPO"
    rows = [["fexofenadine", title, "20"]]
    narrow = table_lines(["task", "title", "q"], rows, ["q"], 30, below="title")
    assert narrow == ["task           q", "    title", "fexofenadine  20", "    Selfies VAE: Fexofenadine", "    MPO"]
    assert table_lines(["task", "title", "q"], rows, ["q"], 80, below="title")[1].split("  ")[1] == title


def test_a_table_without_rows_has_its_headers() -> None:
    assert table_lines(["task", "title", "q"], [], ["q"], 30, below="title") == ["task  title  q"]


def test_words_stay_in_one_piece() -> None:
    rows = [["recalibrated online", "misspecified", "0.5"], ["sparse process", "engineering", "0.25"]]
    lines = table_lines(["analysis", "where", "mean"], rows, {"mean"}, 20)
    assert {"recalibrated", "misspecified", "engineering"} <= {word for line in lines for word in line.split()}
