"""Trials -> a tracking server that may be slow, dead, or left and found again."""

import socket
import time
import warnings
from math import inf
from pathlib import Path

import pytest
from mlflow import MlflowClient
from toy_trials import Results, copy, runs

from plumbline.store import records
from plumbline.store.records import Row
from plumbline.store.spec import TrialSpec
from plumbline.study.plan import Plan
from plumbline.tracking import live as streaming
from plumbline.tracking.live import HASTE, LiveRun
from plumbline.tracking.serving import serving


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the environment as it was: `LiveRun` sets how long MLflow waits."""
    for name, value in HASTE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.mark.usefixtures("impatient")
def test_a_dead_server_hurts_no_trial(tmp_path: Path, plan: Plan) -> None:
    live, results = LiveRun(f"http://127.0.0.1:{free_port()}"), Results(tmp_path, plan)
    started = time.monotonic()
    with pytest.warns(UserWarning, match="the trial goes on without the stream") as caught:
        results.run(live)
    assert len([entry for entry in caught if "stream" in str(entry.message)]) == 4, "of each trial one"
    assert time.monotonic() - started < 10
    assert all(len(records.read_table(path)) == 10 for path in results.chunks)


@pytest.mark.usefixtures("impatient")
def test_a_slow_server_is_given_up(monkeypatch: pytest.MonkeyPatch, plan: Plan, empty: Path, tmp_path: Path) -> None:
    live = local_stream(empty, tmp_path)
    monkeypatch.setattr("plumbline.tracking.live.GRACE", -1e9)
    with pytest.warns(UserWarning, match="has cost this trial"):
        live.start("0" * 16, plan.resolve("TOY-F1").chunks[0].spec, 0, -inf)
    live.round([], {"round_seconds": 1.0})
    live.end(None)
    assert runs(MlflowClient(live.uri), "plumbline")["random s0 branin"].info.status == "RUNNING"


def local_stream(empty: Path, folder: Path) -> LiveRun:
    """Return a stream into a local database, which answers as a server does and starts in no time."""
    copy(empty, folder / "live.db")
    return LiveRun(f"sqlite:///{folder}/live.db")


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_stream_of_resumed_and_failed_trials(done: Results, empty: Path, tmp_path: Path) -> None:
    spec, rounds, seconds = rounds_of(done)
    key = rounds[0][0]["key"]
    live = local_stream(empty, tmp_path)
    client = MlflowClient(live.uri)

    def streamed(name: str = "best_f") -> tuple[str, list[int]]:
        run = runs(client, "plumbline")["ei s0 branin"]
        return run.info.status, [entry.step for entry in client.get_metric_history(run.info.run_id, name)]

    live.end("before it started")  # what is said of a trial that failed while it was put together
    live.start(key, spec, 0, -inf)
    live.round(rounds[0][:2], seconds)  # a long initial design comes in pieces
    assert streamed() == ("RUNNING", [])
    live.round(rounds[0][2:], seconds)
    assert streamed() == ("RUNNING", [3])
    again = LiveRun(live.uri)  # killed and started again: the checkpoint may be behind the stream
    again.start(key, spec, 0, -inf)
    again.round(rounds[0], seconds)
    again.round(rounds[1], seconds)
    again.end("no memory for it")
    assert streamed() == ("FAILED", [3, 4])
    assert "plumbline.error" in runs(client, "plumbline")["ei s0 branin"].data.tags
    whole = LiveRun(live.uri)
    whole.start(key, spec, 0, -inf)
    for rows in rounds:
        whole.round(rows, seconds)
    whole.end(None)
    assert streamed() == ("FINISHED", [3, 4, 5])
    assert "plumbline.error" not in runs(client, "plumbline")["ei s0 branin"].data.tags


def rounds_of(done: Results) -> tuple[TrialSpec, list[list[Row]], dict[str, float]]:
    """Return spec, rows by round and seconds of a trial, as an observer gets them."""
    rows = records.read_table(done.chunks[1]).to_pylist(maps_as_pydicts="strict")
    rows = [row for row in rows if row["seed"] == 0]
    seconds = {name: rows[-1].pop(name) for name in records.SECONDS}
    rounds = [[row for row in rows if row["iteration"] == i] for i in range(3)]
    return done.plan.resolve("TOY-F1").chunks[1].spec, rounds, seconds


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_stream_and_an_import_say_the_same(done: Results, results: Results, empty: Path, tmp_path: Path) -> None:
    spec, rounds, seconds = rounds_of(done)
    live = local_stream(empty, tmp_path)
    live.start(rounds[0][0]["key"], spec, 0, -inf)
    for rows in rounds:
        live.round(rows, seconds)
    live.end(None)
    results.track()
    clients = MlflowClient(live.uri), results.client()
    streamed, imported = (
        runs(client, name)["ei s0 branin"]
        for client, name in zip(clients, ("plumbline", "quick/toy/TOY-F1"), strict=True)
    )
    assert streamed.data.metrics.keys() == imported.data.metrics.keys()
    assert streamed.data.params == imported.data.params
    for name in imported.data.metrics.keys() - {*records.SECONDS}:
        one, other = (
            [(entry.step, entry.value) for entry in client.get_metric_history(run.info.run_id, name)]
            for client, run in zip(clients, (streamed, imported), strict=True)
        )
        assert one == other, name


@pytest.mark.usefixtures("impatient")
def test_a_stream_of_a_second_half_says_nothing_of_the_whole(done: Results, empty: Path, tmp_path: Path) -> None:
    spec, rounds, seconds = rounds_of(done)
    live = local_stream(empty, tmp_path)
    live.start(rounds[0][0]["key"], spec, 1, -inf)
    live.round(rounds[2], seconds)
    live.end(None)
    run = runs(MlflowClient(live.uri), "plumbline")["ei s0 branin"]
    assert run.info.status == "KILLED", "it is not whole"
    assert "nll" in run.data.metrics
    assert "best_f" not in run.data.metrics


@pytest.mark.usefixtures("impatient")
def test_a_stream_is_thinned(done: Results, empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.tracking.runs.STEPS", 2)
    spec, rounds, seconds = rounds_of(done)
    live = local_stream(empty, tmp_path)
    live.start(rounds[0][0]["key"], spec, 0, -inf)
    for rows in rounds:
        live.round(rows, seconds)
    live.end(None)
    client = MlflowClient(live.uri)
    run = runs(client, "plumbline")["ei s0 branin"]
    assert run.info.status == "FINISHED"
    assert [entry.step for entry in client.get_metric_history(run.info.run_id, "best_f")] == [3, 5]


class Monitor:
    """In the place of MLflow's, which needs ten seconds to say anything."""

    made: list["Monitor"]

    def __init__(self, run: str, resume_logging: bool, tracking_uri: str) -> None:
        self.run, self.state = run, "made"
        assert resume_logging
        assert tracking_uri.startswith("sqlite")
        Monitor.made.append(self)

    def start(self) -> None:
        self.state = "started"

    def finish(self) -> None:
        assert self.state == "started"
        self.state = "finished"


@pytest.fixture
def monitors(monkeypatch: pytest.MonkeyPatch) -> list[Monitor]:
    Monitor.made = []
    monkeypatch.setattr(streaming, "SystemMetricsMonitor", Monitor)
    return Monitor.made


@pytest.mark.usefixtures("impatient")
def test_trials_of_more_than_a_minute_tell_what_the_machine_does(
    done: Results, empty: Path, tmp_path: Path, monitors: list[Monitor]
) -> None:
    spec, rounds, seconds = rounds_of(done)
    live = local_stream(empty, tmp_path)
    live.start(rounds[0][0]["key"], spec, 0, -inf)
    live.round(rounds[0], seconds | {"round_seconds": 31.0})
    assert not monitors
    for rows in rounds[1:]:
        live.round(rows, seconds | {"round_seconds": 31.0})
    assert [(one.run, one.state) for one in monitors] == [(live.run, "started")]
    live.end(None)
    assert [one.state for one in monitors] == ["finished"]


@pytest.mark.usefixtures("impatient")
def test_nothing_watches_a_stream_that_was_given_up(
    done: Results, empty: Path, tmp_path: Path, monitors: list[Monitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, rounds, seconds = rounds_of(done)
    live = local_stream(empty, tmp_path)
    live.start(rounds[0][0]["key"], spec, 0, -inf)
    live.round(rounds[0], seconds | {"round_seconds": 61.0})
    monkeypatch.setattr("plumbline.tracking.live.GRACE", -1e9)
    with pytest.warns(UserWarning, match="has cost this trial"):
        live.round(rounds[1], seconds)
    assert [one.state for one in monitors] == ["finished"]


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_mlflows_own_monitor(done: Results, empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.1")
    monkeypatch.setattr("plumbline.tracking.live.GRACE", 600.0)
    spec, rounds, seconds = rounds_of(done)
    live = local_stream(empty, tmp_path)
    live.start(rounds[0][0]["key"], spec, 0, -inf)
    live.round(rounds[0], seconds | {"round_seconds": 61.0})
    end = time.monotonic() + 60
    while time.monotonic() < end:
        run = runs(MlflowClient(live.uri), "plumbline")["ei s0 branin"]
        if "system/cpu_utilization_percentage" in run.data.metrics:
            break
        time.sleep(0.5)
    live.end(None)
    assert {"system/cpu_utilization_percentage", "system/system_memory_usage_megabytes"} <= run.data.metrics.keys()


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_stream_to_a_server_and_import(
    empty: Path, tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "60")  # on a busy machine a new server takes its time
    monkeypatch.setattr("plumbline.tracking.live.GRACE", 600.0)
    (tmp_path / "server").mkdir()
    copy(empty, tmp_path / "server/mlflow.db")
    results, one = Results(tmp_path, plan), "quick/toy/TOY-F1"
    with serving(f"sqlite:///{tmp_path}/server/mlflow.db", free_port()) as started:
        server = started.address
        client = MlflowClient(server)
        with warnings.catch_warnings(record=True) as caught:
            results.run(LiveRun(server))
        assert not [str(entry.message) for entry in caught if "stream" in str(entry.message)]
        live = runs(client, "plumbline")
        assert {run.info.status for run in live.values()} == {"FINISHED"}
        assert live["ei s0 branin"].data.params["method.model.kernel"] == "matern52"

        assert results.track(uri=server).startswith("8 trials imported, 0 there already")
        assert results.track(uri=server).startswith("0 trials imported, 8 there already")
        found = runs(client, one)
        assert len(found) == 6
        assert runs(client, "plumbline").keys() == live.keys(), "what was streamed stays"
        files = {entry.path for entry in client.list_artifacts(found["ei s0 branin"].info.run_id)}
        assert {"spec.json", "provenance.json", "records.parquet", "curves.svg"} <= files

        client.update_run(found["ei s0 branin"].info.run_id, status="RUNNING")  # as if the import had broken off
        assert results.track(uri=server).startswith("1 trials imported, 7 there already")
        assert {run.info.status for run in runs(client, one).values()} == {"FINISHED"}
        (tmp_path / "quick" / "figures").mkdir(parents=True)
        (tmp_path / "quick" / "figures" / "TOY-F1.png").write_text("a figure")
        for _ in range(2):
            results.track(uri=server)
        outputs = runs(client, one)["figure and table"].info.run_id
        assert [entry.path for entry in client.list_artifacts(outputs, "figures")] == ["figures/TOY-F1.png"]
