"""What is no table of forecasts is said in one line, with the row or the line."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from plumbline.analysis.diagnosis.forecasts import FEWEST, MOST, forecasts_of, read_forecasts
from plumbline.core.errors import PlumblineError, shown


def table(n: int = 12, **columns: object) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"y": rng.standard_normal(n), "mean": np.zeros(n), "sd": np.ones(n)}).assign(**columns)


def with_cell(column: str, row: int, value: object) -> pd.DataFrame:
    frame = table().astype(object)
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (table().drop(columns="sd"), "the table has no column 'sd': y, mean and sd are needed (it has y, mean)"),
        (with_cell("mean", 3, "high"), "the table, row 3: mean is 'high', not a finite number"),
        (with_cell("y", 0, np.nan), "the table, row 0: y is nan, not a finite number"),
        (with_cell("y", 2, np.inf), "the table, row 2: y is inf, not a finite number"),
        (with_cell("sd", 5, 0), "the table, row 5: sd is 0: it must be above zero"),
        (with_cell("sd", 5, -1.5), "the table, row 5: sd is -1.5: it must be above zero"),
        (table(FEWEST - 1), "the table has 9 forecasts: it takes 10 to 2,000"),
        (table(MOST + 1), "the table has 2001 forecasts: it takes 10 to 2,000"),
        (table(round="first"), "the table, row 0: round is 'first', not a finite number"),
        (table(x1=None), "the table, row 0: x1 is None, not a finite number"),
        (table(**{" y": 1.0}), "the table has two columns 'y'"),
        (
            table().rename(columns=str.upper),
            "the table has no column 'y': did you mean 'y' by 'Y', 'mean' by 'MEAN', 'sd' by 'SD'?",
        ),
        (table().rename(columns={"sd": "std"}), "the table has no column 'sd': did you mean 'sd' by 'std'?"),
        (
            pd.DataFrame({"y;mean;sd": ["1;2;3"]}),
            "the table seems to have semicolons between its columns: commas are needed",
        ),
        (with_cell("y", 3, None).rename(index="n{}".format), "the table, row 'n3': y is None, not a finite number"),
        (with_cell("y", 2, " "), "the table, row 2: y is empty, not a finite number"),
        (with_cell("y", 2, " NaN "), "the table, row 2: y is NaN, not a finite number"),
        (with_cell("y", 2, "1\n2"), r"the table, row 2: y is '1\n2', not a finite number"),
        (table(sd=pd.Timestamp("2020-01-01")), "the table, row 0: sd is 2020-01-01 00:00:00, not a finite number"),
        (table(sd=1j), "the table, row 0: sd is 1j, not a finite number"),
    ],
)
def test_what_is_refused(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(PlumblineError) as error:
        forecasts_of(frame)
    assert str(error.value) == message


no_number = st.sampled_from(
    [
        np.nan,
        np.inf,
        -np.inf,
        np.float64("nan"),
        np.float32("inf"),
        np.str_("a"),
        None,
        pd.NA,
        pd.NaT,
        "",
        "b\nc",
        "1_0",
        [np.float64(1.0)],
        np.array([1.0, 2.0]),
        1j,
        np.datetime64("2020-01-01"),
        b"1.x",
        10**400,
    ]
)


@settings(max_examples=40, deadline=None)
@given(
    cell=no_number,
    row=st.integers(0, 11),
    column=st.sampled_from(["y", "mean", "sd"]),
    label=st.sampled_from([str, lambda i: i + 100, lambda i: ("a", np.int64(i)), np.float64, pd.Timestamp]),
)
def test_a_cell_that_is_no_number_is_said_in_one_line_with_its_label(
    cell: object, row: int, column: str, label: Callable[[int], object]
) -> None:
    frame = table()
    frame[column] = pd.Series([cell if i == row else 1.0 for i in range(12)], dtype=object)
    frame.index = pd.Index([label(i) for i in range(12)])
    with pytest.raises(PlumblineError) as error:
        forecasts_of(frame)
    assert str(error.value).startswith(f"the table, row {shown(label(row))}: {column} is ")
    assert "\n" not in str(error.value)
    assert "np." not in str(error.value)


@given(scale=st.floats(1e-280, 1e280), row=st.integers(0, 11), times=st.floats(1e101, 1e300))
def test_any_units_will_do_but_not_those_of_something_else(scale: float, row: int, times: float) -> None:
    frame = table()
    scaled = forecasts_of(frame[["y", "mean", "sd"]] * scale)
    np.testing.assert_allclose(scaled.z, forecasts_of(frame).z)
    frame.loc[row, "y"] = frame.loc[row, "mean"] + 1.0
    frame.loc[row, "sd"] = 1.0 / times
    with pytest.raises(PlumblineError, match=rf"^the table, row {row}: y lies more than 1e\+100 sd from the mean"):
        forecasts_of(frame)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(before=st.lists(st.sampled_from(["1,2,3", "1,2,3,", '1,2,3,"a\nb"', "", " ", ",,"]), max_size=30))
@example(before=[])
def test_the_line_of_a_file_is_that_of_an_editor(before: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    text = "\n".join(["y,mean,sd,note", *before, "1,2,high", *["1,2,3"] * 10])
    path.write_text(text)
    line = 1 + text[: text.index("1,2,high")].count("\n")
    with pytest.raises(PlumblineError) as error:
        read_forecasts(path)
    assert str(error.value) == f"{path}, line {line}: sd is 'high', not a finite number"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty: a CSV file is wanted"),
        ("\n \n", "is empty: a CSV file is wanted"),
        ("\x00\x01", "is not text, as a CSV file is"),
        ("\x01\x02", r"has no column 'y': y, mean and sd are needed (it has '\x01\x02')"),
        ('"a\nb",c', r"has no column 'y': y, mean and sd are needed (it has 'a\nb', c)"),
        ('y,mean,sd\n1,2,3\n"1,2', ", line 3: no row of a CSV file (unexpected end of data)"),
        ("y,mean,sd\n1,2,3,4,5\n1,2\n", ", line 2: 5 cells, and the header has 3"),
        ("y,y,mean,sd\n1,2,3,4\n", "has two columns 'y'"),
        ("y;mean;sd\n1,5;2;3\n", "seems to have semicolons between its columns: commas are needed"),
        ("Y\tMean\tSD\n1\t2\t3\n", "seems to have tabs between its columns: commas are needed"),
        ("y mean sd\n1 2 3\n", "seems to have spaces between its columns: commas are needed"),
        ("Y, Mean, SD\n1, 2, 3\n", "has no column 'y': did you mean 'y' by 'Y', 'mean' by 'Mean', 'sd' by 'SD'?"),
    ],
)
def test_what_is_no_csv_of_forecasts_is_one_line(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(PlumblineError, match=r"a\.csv") as error:
        read_forecasts(path)
    assert str(error.value).endswith(words)
    assert "\n" not in str(error.value)


def test_a_file_with_spaces_and_without_a_last_line_end(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y, mean, sd\n" + "\n".join("1.5, 1, .5" for _ in range(10)))
    found = read_forecasts(path)
    assert found.z == pytest.approx(np.ones(10))


def test_rows_are_in_the_order_of_rounds() -> None:
    frame = table(round=np.arange(12)[::-1], X_2=np.arange(12.0), batch=3)
    found = forecasts_of(frame)
    assert found.y == pytest.approx(frame["y"].to_numpy()[::-1])
    assert list(found.round) == list(range(12))
    assert list(found.inputs) == ["X_2"]
    assert found.inputs["X_2"][0] == 11.0
    assert found.ignored == ("batch",)
