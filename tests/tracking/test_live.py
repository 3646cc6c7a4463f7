"""Trials -> a tracking server that may be slow, dead, or left and found again."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mlflow import MlflowClient
from toy_trials import Results, copy, runs

from plumbline.store import records
from plumbline.store.records import Row
from plumbline.store.spec import TrialSpec
from plumbline.study.plan import Plan
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
    with pytest.warns(UserWarning, match="the trial goes on without the stream") as caught:
        results.run(live)
    assert len([entry for entry in caught if "stream" in str(entry.message)]) == len(results.chunks)
    assert time.monotonic() - started < 10
    assert all(len(records.read_table(path)) == 5 for path in results.chunks)


@pytest.mark.usefixtures("impatient")
def test_a_slow_server_is_given_up(monkeypatch: pytest.MonkeyPatch, plan: Plan, empty: Path, tmp_path: Path) -> None:
    live = local_stream(empty, tmp_path)
    monkeypatch.setattr("plumbline.tracking.live.GRACE", -1e9)
    with pytest.warns(UserWarning, match="has cost this trial"):
        live.start("0" * 16, plan.resolve("TOY-F1").chunks[0].spec, 0)
    live.round([], {"round_seconds": 1.0})
    live.end(None)
    assert runs(MlflowClient(live.uri), "plumbline")["branin random seed 0"].info.status == "RUNNING"


def local_stream(empty: Path, folder: Path) -> LiveRun:
    """Return a stream into a local database, which answers as a server does and starts in no time."""
    copy(empty, folder / "live.db")
    return LiveRun(f"sqlite:///{folder}/live.db")


@pytest.mark.usefixtures("impatient")
def test_stream_of_resumed_and_failed_trials(done: Results, empty: Path, tmp_path: Path) -> None:
    spec, rounds, seconds = rounds_of(done)
    key = rounds[0][0]["key"]
    live = local_stream(empty, tmp_path)
    client = MlflowClient(live.uri)

    def streamed(name: str = "best_f") -> tuple[str, list[int]]:
        run = runs(client, "plumbline")["branin ei seed 0"]
        return run.info.status, [entry.step for entry in client.get_metric_history(run.info.run_id, name)]

    live.end("before it started")  # what is said of a trial that failed while it was put together
    live.start(key, spec, 0)
    live.round(rounds[0][:2], seconds)  # a long initial design comes in pieces
    assert streamed() == ("RUNNING", [])
    live.round(rounds[0][2:], seconds)
    assert streamed() == ("RUNNING", [3])
    again = LiveRun(live.uri)  # killed and started again: the checkpoint may be behind the stream
    again.start(key, spec, 0)
    again.round(rounds[0], seconds)
    again.round(rounds[1], seconds)
    again.end("no memory for it")
    assert streamed() == ("FAILED", [3, 4])
    assert "plumbline.error" in runs(client, "plumbline")["branin ei seed 0"].data.tags
    whole = LiveRun(live.uri)
    whole.start(key, spec, 0)
    for rows in rounds:
        whole.round(rows, seconds)
    whole.end(None)
    assert streamed() == ("FINISHED", [3, 4, 5])
    assert "plumbline.error" not in runs(client, "plumbline")["branin ei seed 0"].data.tags


def rounds_of(done: Results) -> tuple[TrialSpec, list[list[Row]], dict[str, float]]:
    """Return spec, rows by round and seconds of a trial, as an observer gets them."""
    rows = records.read_table(done.chunks[1]).to_pylist(maps_as_pydicts="strict")
    seconds = {name: rows[-1].pop(name) for name in records.SECONDS}
    rounds = [[row for row in rows if row["iteration"] == i] for i in range(3)]
    return done.plan.resolve("TOY-F1").chunks[1].spec, rounds, seconds


@pytest.mark.usefixtures("impatient")
def test_a_stream_and_an_import_say_the_same(done: Results, results: Results, empty: Path, tmp_path: Path) -> None:
    spec, rounds, seconds = rounds_of(done)
    live = local_stream(empty, tmp_path)
    live.start(rounds[0][0]["key"], spec, 0)
    for rows in rounds:
        live.round(rows, seconds)
    live.end(None)
    results.track()
    clients = MlflowClient(live.uri), results.client()
    streamed, imported = (
        runs(client, name)["branin ei seed 0"] for client, name in zip(clients, ("plumbline", "toy"), strict=True)
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
    live.start(rounds[0][0]["key"], spec, 1)
    live.round(rounds[2], seconds)
    live.end(None)
    run = runs(MlflowClient(live.uri), "plumbline")["branin ei seed 0"]
    assert run.info.status == "KILLED", "an import makes it anew"
    assert "nll" in run.data.metrics
    assert "best_f" not in run.data.metrics


@pytest.mark.usefixtures("impatient")
def test_a_stream_is_thinned(done: Results, empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.tracking.runs.STEPS", 2)
    spec, rounds, seconds = rounds_of(done)
    live = local_stream(empty, tmp_path)
    live.start(rounds[0][0]["key"], spec, 0)
    for rows in rounds:
        live.round(rows, seconds)
    live.end(None)
    client = MlflowClient(live.uri)
    run = runs(client, "plumbline")["branin ei seed 0"]
    assert run.info.status == "FINISHED"
    assert [entry.step for entry in client.get_metric_history(run.info.run_id, "best_f")] == [3, 5]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A tracking server of its own."""
    with serving(tmp_path, f"sqlite:///{tmp_path}/server.db") as address:
        yield address


@contextmanager
def serving(folder: Path, database: str) -> Iterator[str]:
    """Yield the address of a tracking server on a database."""
    port = free_port()
    where = ["--backend-store-uri", database, "--artifacts-destination", str(folder / "a")]
    command = [sys.executable, "-m", "mlflow", "server", *where, "--host", "127.0.0.1", "--port", str(port)]
    environment = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true"}
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--workers", "1"], stdout=log, stderr=log, cwd=folder, env=environment, start_new_session=True
        )
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                break
            except OSError:
                assert process.poll() is None, (folder / "server.log").read_text()
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


@pytest.mark.slow
def test_a_server_shows_figures_of_results_that_were_moved(results: Results) -> None:
    figure = results.root / "quick" / "figures" / "TOY-F1.png"
    figure.parent.mkdir(parents=True)
    figure.write_text("a figure")
    results.track()
    there = Results(results.root.rename(results.root.with_name(f"{results.root.name}-moved")), results.plan)
    there.store, there.trials = results.store, results.trials
    there.track()
    with serving(there.root, there.uri) as server:
        summary = runs(MlflowClient(server), "toy")["summary of quick"].info.run_id
        asked = f"{server}/get-artifact?path=figures/TOY-F1.png&run_uuid={summary}"
        assert urllib.request.urlopen(asked, timeout=60).read() == b"a figure"
