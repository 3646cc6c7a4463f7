"""Rows on disk: what is written is what is read, and nothing that breaks the schema is either."""

import errno
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.store import records
from plumbline.store.records import (
    RECORD,
    SECONDS,
    TIMING,
    check,
    concatenate,
    join_timings,
    list_column,
    read_table,
    to_table,
    write_table,
)

KEY = "0123456789abcdef"


def read_records(path: Path) -> pd.DataFrame:
    table = read_table(path)
    check(table, path)
    return table.to_pandas(maps_as_pydicts="strict")


def row(**changes: Any) -> dict[str, Any]:
    plain = {
        "key": KEY,
        "task": "branin",
        "method": "ei",
        "seed": 0,
        "iteration": 0,
        "evaluation": 0,
        "x": [0.5],
        "y": [1.0],
        "f": [1.0],
        "events": [],
        "status": "ok",
    }
    return plain | changes


finite = st.floats(allow_nan=False, allow_infinity=False)
rows = st.fixed_dictionaries(
    {
        "x": st.lists(finite, min_size=1, max_size=3),
        "y": st.lists(finite | st.just(float("nan")), min_size=1, max_size=2),
        "optimum": finite | st.just(float("nan")) | st.none(),
        "ref_point": st.none() | st.lists(finite, min_size=2, max_size=2),
        "roles": st.none() | st.just(["objective"]),
        "pit": st.none() | st.floats(0, 1),
        "predicted_sd": st.none() | st.floats(0, 1e300),
        "alpha": st.none() | st.lists(st.floats(0, 1), max_size=2),
        "events": st.lists(st.text(max_size=4), max_size=2),
        "notes": st.none() | st.dictionaries(st.text(max_size=3), finite, max_size=2).map(lambda d: list(d.items())),
        "seed": st.integers(0, 2**31 - 1),
        "status": st.sampled_from(["ok", "error"]),
        "error": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    }
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(st.lists(rows, min_size=1, max_size=4))
def test_rows_round_trip(tmp_path: Path, some: list[dict[str, Any]]) -> None:
    table = to_table(row(**one) for one in some)
    path = tmp_path / "records.parquet"
    write_table(path, table)
    again = records.read_table(path)
    assert again.schema.equals(RECORD)
    # NaN is unequal to itself, so compare what would be written.
    assert repr(again.to_pylist()) == repr(table.to_pylist())
    frame = read_records(path)
    assert list(frame.columns) == RECORD.names
    assert len(frame) == len(some)
    first = path.read_bytes()
    write_table(path, to_table(row(**one) for one in some))
    assert path.read_bytes() == first


def test_missing_fields_are_null() -> None:
    table = to_table([row()])
    assert table["pit"].null_count == 1
    assert table["notes"].null_count == 1


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"y": [1.0, float("inf")]}, "y"),
        ({"x": [float("-inf")]}, "x"),
        ({"x": [0.0, float("nan")]}, "x"),
        ({"f": [float("-inf")]}, "f"),
        ({"key": "short"}, "key"),
        ({"key": KEY.upper()}, "key"),
        ({"seed": -1}, "seed"),
        ({"iteration": -1}, "iteration"),
        ({"evaluation": -1}, "evaluation"),
        ({"pit": 1.5}, "pit"),
        ({"predicted_sd": -0.1}, "predicted_sd"),
        ({"status": "fine"}, "status"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], column: str) -> None:
    with pytest.raises(PlumblineError, match="these rows: records break the schema") as caught:
        to_table([row(), row(**changes)])
    assert column in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_refused_at_reading(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    write_table(path, arrow.Table.from_pylist([row(y=[float("inf")])], schema=RECORD))
    with pytest.raises(PlumblineError, match=r"records\.parquet: records break the schema"):
        read_records(path)
    write_table(path, arrow.table({"key": [KEY]}))
    with pytest.raises(PlumblineError, match=r"records\.parquet: records break the schema"):
        read_records(path)


def test_outcomes_that_were_not_asked_for_are_nan(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    write_table(path, to_table([row(y=[float("nan"), 2.0], f=[1.0, float("nan")])]))
    assert repr(read_records(path)["y"][0].tolist()) == "[nan, 2.0]"


def test_some_columns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    write_table(path, to_table([row()]))
    assert records.read_table(path, ["key", "y"]).column_names == ["key", "y"]
    write_table(path, to_table([row()]).select(records.POINTLESS))
    assert "x" not in read_records(path), "most files have no points"


def test_lists_of_numbers_are_not_copied() -> None:
    values = np.arange(6.0).reshape(3, 2)
    column = list_column(values)
    assert column.to_pylist() == values.tolist()
    assert column.type == RECORD.field("x").type
    values[1, 1] = 7.0
    assert column.to_pylist()[1] == [2.0, 7.0]


def test_a_failed_trial_without_rows_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    write_table(path, to_table([row(x=[], y=[], f=[], status="error", error="no luck")]))
    assert read_records(path)["error"].tolist() == ["no luck"]


@pytest.mark.parametrize("keep", [0, 4, 0.3, 0.9])
def test_a_truncated_file(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "records.parquet"
    write_table(path, to_table([row()]))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep if keep >= 1 or not keep else keep * len(whole))])
    with pytest.raises(PlumblineError, match=r"records.parquet is corrupt \(.*\): delete it and run again") as caught:
        read_records(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "error", [arrow.ArrowMemoryError("no memory"), OSError(errno.EMFILE, "too many files"), OSError(errno.EIO, "disk")]
)
def test_a_fault_of_the_machine_is_no_damage(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(parquet, "read_table", fail)
    with pytest.raises(type(error)) as caught:
        read_table(tmp_path / "records.parquet")
    assert caught.value is error


def test_no_file_and_no_parquet(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no records at .*: run the trials first"):
        read_records(tmp_path / "absent.parquet")
    (tmp_path / "text.parquet").write_text("not parquet at all, but long enough to look at")
    with pytest.raises(PlumblineError, match="is corrupt"):
        read_records(tmp_path / "text.parquet")


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 9), st.floats(width=32), st.floats() | st.none()),
        max_size=40,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_small_files_have_the_same_content(tmp_path: Path, some: list[tuple[Any, ...]]) -> None:
    word, number, single, double = (list(column) for column in zip(*some, strict=True)) if some else ([],) * 4
    types = {"word": arrow.string(), "number": arrow.int32(), "single": arrow.float32(), "double": arrow.float64()}
    columns = [arrow.array(one, of) for one, of in zip((word, number, single, double), types.values(), strict=True)]
    table = arrow.table(columns, schema=arrow.schema(list(types.items())))
    write_table(tmp_path / "small.parquet", table, small=True)
    found = read_table(tmp_path / "small.parquet")
    assert found.schema.equals(table.schema)
    pd.testing.assert_frame_equal(found.to_pandas(), table.to_pandas())


def test_small_files_are_smaller(tmp_path: Path) -> None:
    table = arrow.table({"value": np.random.default_rng(0).lognormal(size=20_000).astype(np.float32)})
    for small in (False, True):
        write_table(tmp_path / f"{small}.parquet", table, small=small)
    sizes = {small: (tmp_path / f"{small}.parquet").stat().st_size for small in (False, True)}
    assert sizes[True] < 0.92 * sizes[False]


def test_metadata_ride_along(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    write_table(path, to_table([row()]), {"commit": "abc"})
    assert parquet.read_schema(path).metadata[b"commit"] == b"abc"


def test_seconds_are_joined_by_round() -> None:
    table = to_table([row(iteration=i, evaluation=n) for n, i in enumerate([0, 0, 1, 2, 3])])
    seconds = {name: float(i) for i, name in enumerate(SECONDS)}
    timings = arrow.Table.from_pylist(
        [{"key": KEY, "iteration": i, **seconds, "round_seconds": 10.0 * i} for i in (2, 0, 1)], schema=TIMING
    )
    joined = join_timings(table, timings)
    assert joined["round_seconds"].to_pylist() == [0.0, 0.0, 10.0, 20.0, None]
    assert joined["fit_seconds"].to_pylist() == [0.0, 0.0, 0.0, 0.0, None]
    assert joined.column_names == [*RECORD.names, *SECONDS]


def test_seconds_of_a_trial_that_never_began() -> None:
    table = to_table([row(x=[], y=[], f=[], status="error", error="no luck")])
    joined = join_timings(table, arrow.Table.from_pylist([], schema=TIMING))
    assert joined["round_seconds"].to_pylist() == [None]


def test_tables_are_put_in_order() -> None:
    tables = [to_table([row(seed=seed)]) for seed in (2, 0, 1)]
    assert concatenate(tables)["seed"].to_pylist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"key": ["x"]}, "column 'key' holds x, not 16 hex digits"),
        ({"key": [KEY]}, "there is no column 'seed'"),
        ({"key": [KEY], "seed": ["one"]}, "column 'seed': "),
        ({"key": [KEY], "seed": [None]}, "column 'seed'"),
    ],
)
def test_tables_of_any_columns_are_checked(columns: dict[str, Any], reason: str) -> None:
    with pytest.raises(PlumblineError, match=f"^somewhere: records break the schema: {reason}"):
        check(arrow.table(columns), "somewhere")


def test_the_names_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    write_table(path, to_table([row()]))
    assert records.read_names(path) == RECORD.names
    with pytest.raises(PlumblineError, match="no records at"):
        records.read_names(tmp_path / "absent.parquet")


@pytest.mark.slow
def test_a_flipped_byte_changes_no_value(tmp_path: Path) -> None:
    """Pages have checksums; a name of a column that is damaged is another name."""
    path = tmp_path / "records.parquet"
    rows = [records_row(evaluation) for evaluation in range(9)]
    records.write_table(path, records.to_table(rows))
    whole, table = path.read_bytes(), records.read_table(path)
    for case in range(300):
        stream = random.Random(case)
        content = bytearray(whole)
        content[stream.randrange(len(content))] ^= stream.randrange(1, 256)
        path.write_bytes(content)
        with suppress(PlumblineError):
            found = records.read_table(path)
            for name in set(found.column_names) & set(table.column_names):
                assert repr(found[name].to_pylist()) == repr(table[name].to_pylist()), (case, name)


def records_row(evaluation: int) -> dict[str, object]:
    values = [0.25 * evaluation, -1.5]
    names = {"key": "0" * 16, "task": "t", "method": "m", "seed": 3, "status": "ok"}
    return {**names, "iteration": evaluation, "evaluation": evaluation, "x": values, "y": values[:1], "f": values[:1]}


def test_a_column_that_is_asked_for_is_there(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    records.write_table(path, records.to_table([records_row(0)]).drop_columns(["nll"]))
    with pytest.raises(PlumblineError, match=r"records\.parquet has no column 'nll': delete it and run again"):
        records.read_table(path, ["key", "nll"])
