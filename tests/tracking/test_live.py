"""Trials -> a tracking server that may be slow, dead, or left and found again."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient
from toy_trials import Results, copy, runs

from plumbline import records
from plumbline.config import Plan
from plumbline.tracking import LiveRun
from plumbline.tracking.live import HASTE


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
    with pytest.warns(UserWarning, match="trials go on without the stream") as caught:
        results.run(live)
    assert len([entry for entry in caught if "stream" in str(entry.message)]) == 1
    assert time.monotonic() - started < 10
    assert all(len(records.read_table(path)) == 5 for path in results.chunks)


@pytest.mark.usefixtures("impatient")
def test_a_slow_server_is_given_up(monkeypatch: pytest.MonkeyPatch, plan: Plan, empty: Path, tmp_path: Path) -> None:
    live = local_stream(empty, tmp_path)
    monkeypatch.setattr("plumbline.tracking.live.GRACE", -1e9)
    with pytest.warns(UserWarning, match="has cost this trial"):
        live.start("0" * 16, plan.chunks("TOY-F1")[0].spec, 0)
    live.round([], {"round_seconds": 1.0})
    live.end(None)
    assert runs(MlflowClient(live.uri), "plumbline")["branin random seed 0"].info.status == "RUNNING"


def local_stream(empty: Path, folder: Path) -> LiveRun:
    """Return a stream into a local database, which answers as a server does and starts in no time."""
    copy(empty, folder / "live.db")
    return LiveRun(f"sqlite:///{folder}/live.db")


@pytest.mark.usefixtures("impatient")
def test_stream_of_resumed_and_failed_trials(done: Results, empty: Path, tmp_path: Path) -> None:
    spec = done.plan.chunks("TOY-F1")[1].spec
    rows = records.read_table(done.chunks[1]).to_pylist(maps_as_pydicts="strict")
    seconds = {name: rows[-1][name] for name in records.SECONDS}
    live = local_stream(empty, tmp_path)
    client = MlflowClient(live.uri)

    def streamed() -> tuple[str, list[int]]:
        run = runs(client, "plumbline")["branin ei seed 0"]
        return run.info.status, [entry.step for entry in client.get_metric_history(run.info.run_id, "best_y")]

    live.end("before it started")  # what is said of a trial that failed while it was put together
    live.start(rows[0]["key"], spec, 0)
    live.round(rows[:3], seconds)
    assert streamed() == ("RUNNING", [0, 1, 2])
    again = LiveRun(live.uri)  # killed and started again: the checkpoint may be behind the stream
    again.start(rows[0]["key"], spec, 0)
    again.round(rows[:3], seconds)
    again.round(rows[3:4], seconds)
    again.end("no memory for it")
    half = runs(client, "plumbline")["branin ei seed 0"].info.run_id
    client.log_metric(half, "covered.alpha-0.1", 0.0, step=4)  # a row that was cut off before it was whole
    assert streamed() == ("FAILED", [0, 1, 2, 3])
    again.start(rows[0]["key"], spec, 1)
    again.round(rows[4:], seconds)
    again.end(None)
    assert streamed() == ("FINISHED", [0, 1, 2, 3, 4])
    run = runs(client, "plumbline")["branin ei seed 0"].info.run_id
    shares = [entry.value for entry in client.get_metric_history(run, "query_miscoverage.alpha-0.1")]
    missed = [not row["covered"][0] for row in rows[3:]]
    assert shares == [missed[0], sum(missed) / 2], "counted on from before the interruption"
    assert "plumbline.error" not in runs(client, "plumbline")["branin ei seed 0"].data.tags


@pytest.mark.usefixtures("impatient")
def test_a_stream_with_a_gap_is_not_called_finished(done: Results, empty: Path, tmp_path: Path) -> None:
    spec = done.plan.chunks("TOY-F1")[1].spec
    rows = records.read_table(done.chunks[1]).to_pylist(maps_as_pydicts="strict")
    live = local_stream(empty, tmp_path)
    live.start(rows[0]["key"], spec, 1)
    live.round(rows[4:], {"round_seconds": 1.0})
    live.end(None)
    client = MlflowClient(live.uri)
    assert runs(client, "plumbline")["branin ei seed 0"].info.status == "KILLED"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A tracking server of its own."""
    port = free_port()
    where = [
        "--backend-store-uri",
        f"sqlite:///{tmp_path}/server.db",
        "--artifacts-destination",
        str(tmp_path / "a"),
    ]
    command = [sys.executable, "-m", "mlflow", "server", *where, "--host", "127.0.0.1", "--port", str(port)]
    environment = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true"}
    with (tmp_path / "server.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--workers", "1"],
            stdout=log,
            stderr=log,
            cwd=tmp_path,
            env=environment,
            start_new_session=True,
        )
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                break
            except OSError:
                assert process.poll() is None, (tmp_path / "server.log").read_text()
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, 15)
        process.wait(30)


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_stream_to_a_server_and_import(
    server: str, tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "60")  # on a busy machine a new server takes its time
    monkeypatch.setattr("plumbline.tracking.live.GRACE", 600.0)
    results, client = Results(tmp_path, plan), MlflowClient(server)
    with warnings.catch_warnings(record=True) as caught:
        results.run(LiveRun(server))
    assert not [str(entry.message) for entry in caught if "stream" in str(entry.message)]
    live = runs(client, "plumbline")
    assert {run.info.status for run in live.values()} == {"FINISHED"}
    assert live["branin ei seed 0"].data.params["method.model.kernel"] == "matern52"

    assert results.track(uri=server).startswith("0 trials imported, 2 there already")
    found = runs(client, "plumbline", "toy")
    assert set(found) == {"branin random seed 0", "branin ei seed 0", "summary of quick"}
    assert found["branin ei seed 0"].data.tags["plumbline.experiment"] == "TOY-F1,TOY-F10"

    client.update_run(found["branin ei seed 0"].info.run_id, status="RUNNING")  # as if the stream had broken off
    assert results.track(uri=server).startswith("1 trials imported, 1 there already")
    assert {run.info.status for run in runs(client, "plumbline", "toy").values()} == {"FINISHED"}
    (tmp_path / "quick" / "figures").mkdir(parents=True)
    (tmp_path / "quick" / "figures" / "TOY-F1.png").write_text("a figure")
    for _ in range(2):
        results.track(uri=server)
    summary = runs(client, "toy")["summary of quick"].info.run_id
    assert [entry.path for entry in client.list_artifacts(summary, "figures")] == ["figures/TOY-F1.png"]
