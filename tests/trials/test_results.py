"""What a finished trial leaves behind."""

import json
import math
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
import torch
from handy import Make, rows_of

from plumbline.problems.evaluation import ProblemMetadata
from plumbline.registry.references import canonical_json
from plumbline.store.records import RECORD, SECONDS, TIMING
from plumbline.trials import results, run_trial
from plumbline.trials.log import Log, Step
from plumbline.trials.results import (
    SNAPSHOT,
    constants_of,
    failure_row,
    points_column,
    record_table,
    snapshot_table,
    timing_table,
)

KEY = "0" * 16


def made(rounds: int = 2) -> Log:
    log = Log()
    for iteration in range(rounds + 1):
        X = torch.rand(3, 2, dtype=torch.float64)
        picture = torch.full((2, 7), float(iteration), dtype=torch.float64) if iteration else None
        step = Step(iteration, X, X[:, :1], X[:, 1:], snapshot=picture, seconds={"fit": 1.0})
        log.append(step, step.timing(2.0 + iteration))
    return log


def test_records_hold_what_the_schema_says(cheap_spec: Make, tmp_path: Path) -> None:
    folder = run_trial(cheap_spec("forrester", "calibrated", rounds=1, size=3), tmp_path, tmp_path)
    assert parquet.read_schema(folder.records_path).equals(RECORD)
    last = rows_of(folder)[-1]
    assert dict(last["notes"])["sd_scale"] > 0
    assert json.loads((folder.path / "spec.json").read_text()) == json.loads(
        canonical_json(folder.provenance()["spec"])
    )
    timings = parquet.read_table(folder.timings_path).to_pylist()
    assert timings[1]["round_seconds"] >= timings[1]["fit_seconds"] + timings[1]["acquire_seconds"]


def test_evaluations_and_rounds_are_counted(cheap_spec: Make, tmp_path: Path) -> None:
    rows = rows_of(run_trial(cheap_spec("branin", rounds=12, q=2), tmp_path, tmp_path))
    assert [row["evaluation"] for row in rows] == list(range(28))
    assert [row["iteration"] for row in rows] == [0] * 4 + [i for i in range(1, 13) for _ in range(2)]
    assert all(row["optimum"] == pytest.approx(-0.397887, abs=1e-5) for row in rows)
    assert all(row["roles"] == ["objective"] and row["ref_point"] is None for row in rows)


def test_facts_are_repeated(cheap_spec: Make) -> None:
    log, spec = made(), cheap_spec(task="hill", label="dice", seed=5)
    facts = ProblemMetadata(1.5, (0.0, -1.0), ("objective", "zero"))
    table = record_table(log, constants_of(KEY, spec, facts))
    assert table.schema.equals(RECORD)
    assert len(table) == 9
    for row in table.to_pylist():
        assert (row["key"], row["task"], row["method"], row["seed"]) == (KEY, "hill", "dice", 5)
        assert (row["optimum"], row["ref_point"], row["roles"]) == (1.5, [0.0, -1.0], ["objective", "zero"])
    unknown = record_table(log, constants_of(KEY, spec, ProblemMetadata())).to_pylist()[0]
    assert math.isnan(unknown["optimum"])
    assert unknown["ref_point"] is unknown["roles"] is None


@pytest.mark.parametrize("n", [0, 1, 4, 5, 11])
def test_points_are_not_copied(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "BLOCK", 4)
    X = torch.rand(n, 3, dtype=torch.float64)
    column = points_column(X)
    assert column.to_pylist() == X.tolist()
    assert [len(chunk) for chunk in column.chunks] == [4] * (n // 4) + [n % 4] * (n % 4 > 0)
    if n:
        X[-1, -1] = 9.0
        assert column[n - 1].as_py()[-1] == 9.0


def test_seconds_are_those_of_rounds() -> None:
    table = timing_table(made(), KEY)
    assert table.schema.equals(TIMING)
    assert table["iteration"].to_pylist() == [0, 1, 2]
    assert table["round_seconds"].to_pylist() == [2.0, 3.0, 4.0]
    assert table["fit_seconds"].to_pylist() == [1.0] * 3
    empty = timing_table(Log(), KEY)
    assert len(empty) == 0
    assert set(SECONDS) < set(empty.column_names)


def test_pictures_are_rows() -> None:
    table = snapshot_table(made(), KEY)
    assert table.schema.equals(SNAPSHOT)
    assert table["iteration"].to_pylist() == [1, 1, 2, 2]
    assert table["acquisition"].to_pylist() == [1.0, 1.0, 2.0, 2.0]


@pytest.mark.parametrize(("rounds", "initial", "iteration"), [(-1, 3, 0), (0, 6, 0), (0, 3, 1), (2, 3, 3)])
def test_a_failure_is_in_the_round_that_was_not_finished(rounds: int, initial: int, iteration: int) -> None:
    row = failure_row(made(rounds), initial, {"key": KEY}, "no luck")
    assert (row["iteration"], row["evaluation"]) == (iteration, 3 * (rounds + 1))
    assert (row["status"], row["error"], row["x"]) == ("error", "no luck", [])
