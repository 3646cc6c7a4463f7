"""What a trial has done so far."""

from math import inf, isnan, nan

import pyarrow as arrow
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.history import History
from plumbline.trials.log import LOG, MANY, Batches, GrowingTensor, Log, Step

SECONDS = {"fit_seconds": 0.25, "acquire_seconds": 0.0, "evaluate_seconds": 0.0, "round_seconds": 0.5}


def points(n: int, d: int = 2) -> torch.Tensor:
    return torch.arange(n * d, dtype=torch.float64).reshape(n, d)


def test_rows_are_put_at_the_end_without_moving_those_before_each_time() -> None:
    growing, whole, rooms = GrowingTensor(), points(1000), set()
    assert len(growing.rows) == 0
    first = None
    for i in range(0, 1000, 4):
        growing.append(whole[i : i + 4])
        rooms.add(growing.rows.data_ptr())
        assert torch.equal(growing.rows, whole[: i + 4])
        first = growing.rows if first is None else first
    assert len(rooms) <= 10, "room is doubled"
    assert torch.equal(first, whole[:4]), "views of earlier rows stay as they are"


@pytest.mark.parametrize("n", [0, 1, MANY - 1, MANY, MANY + 1, 3 * MANY])
def test_batches_are_joined_in_order(n: int) -> None:
    batches = Batches()
    for i in range(n):
        batches.append(arrow.record_batch({"i": [i, -i]}))
    for _ in range(2):
        joined = batches.joined()
        assert len(joined) == min(n, 1)
        assert [v for batch in joined for v in batch["i"].to_pylist()] == [v for i in range(n) for v in (i, -i)]


@given(st.lists(st.floats(-5, 5) | st.just(nan), max_size=6), st.integers(1, 2))
def test_the_best_is_that_of_a_single_outcome(values: list[float], outcomes: int) -> None:
    log = Log()
    for y in values:
        log.append(Step(0, points(1), torch.full((1, outcomes), y, dtype=torch.float64), points(1, outcomes)), SECONDS)
    known = [y for y in values if not isnan(y)]
    assert log.best == max(known if outcomes == 1 else [], default=-inf)


def test_a_step_is_rows() -> None:
    columns = {"pit": torch.tensor([0.1, 0.2]), "alpha": torch.tensor([[0.1, 0.2]]).double().expand(2, -1)}
    step = Step(3, points(2), points(2, 1), points(2, 1) + 1, columns, ["Jitter"], {"scale": 2.0}, {"fit": 0.25})
    assert step.timing(0.5) == SECONDS
    batch = step.batch(SECONDS)
    assert batch.schema.equals(LOG)
    first, second = batch.to_pylist()
    assert first["x"] == [0.0, 1.0]
    assert (second["x"], second["y"], second["f"]) == ([2.0, 3.0], [1.0], [2.0])
    assert second["pit"] == pytest.approx(0.2)
    assert second["alpha"] == pytest.approx([0.1, 0.2])
    assert second["width"] is second["predicted_mean"] is None
    assert (second["events"], second["notes"], second["iteration"]) == (["Jitter"], [("scale", 2.0)], 3)
    assert [row["round_seconds"] for row in (first, second)] == [0.5, None], "the seconds of a step add up"
    rows = step.rows(7, {"key": "k", "task": "t"})
    assert [row["evaluation"] for row in rows] == [7, 8]
    assert rows[1]["task"] == "t"
    assert rows[1]["notes"] == {"scale": 2.0}
    for name in ("x", "y", "f", "pit", "alpha", "events", "iteration"):
        assert rows[1][name] == second[name]


def test_the_history_is_a_view() -> None:
    log = Log()
    for iteration in range(5):
        log.append(Step(iteration, points(3), points(3, 1), points(3, 1)), SECONDS)
    history = History(log.X, log.Y, 3)
    assert (len(history), history.initial, log.iteration) == (15, 3, 4)
    assert history.X.shape == (15, 2)
    assert history.Y.shape == (15, 1)
    assert history.X.data_ptr() == log.X.data_ptr(), "nothing is copied"


def test_rows_are_drained_once() -> None:
    log = Log()
    assert log.drain() == []
    log.append(Step(0, points(3), points(3, 1), points(3, 1)), SECONDS)
    log.append(Step(1, points(1), points(1, 1), points(1, 1)), SECONDS)
    (batch,) = log.drain()
    assert batch["iteration"].to_pylist() == [0, 0, 0, 1]
    assert log.drain() == []
    again = Log()
    again.extend(batch)
    assert torch.equal(again.X, log.X)
    assert again.columns().equals(log.columns())
    assert "x" not in log.columns().column_names
