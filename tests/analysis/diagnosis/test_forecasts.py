"""What is no table of forecasts is said in one line, with the row."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plumbline.analysis.diagnosis.forecasts import FEWEST, MOST, forecasts_of, read_forecasts
from plumbline.core.errors import PlumblineError


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
    ],
)
def test_what_is_refused(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(PlumblineError) as error:
        forecasts_of(frame)
    assert str(error.value) == message


def test_rows_of_a_file_are_counted_with_their_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with_cell("sd", 0, 0).to_csv(path, index=False)
    with pytest.raises(PlumblineError, match=r"a\.csv, row 2: sd is 0"):
        read_forecasts(path)


@pytest.mark.parametrize("content", ["", "\x00\x01", 'y,mean,sd\n"1,2', "y,mean,sd\n1,2,3,4,5\n1,2\n"])
def test_what_is_no_csv_is_one_line(content: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(PlumblineError, match=r"a\.csv") as error:
        read_forecasts(path)
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
