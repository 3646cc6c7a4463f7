"""Records -> MLflow: what arrives, and that nothing arrives twice."""

import os
import re
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from plumbline import records, tracking
from plumbline.config import Config, Plan
from plumbline.errors import PlumblineError
from plumbline.options import parse
from plumbline.specs import TrialSpec
from plumbline.study import Study
from plumbline.tracking import LiveRun, import_trials
from plumbline.trials import Trial, run_trial

CHEAP = {"search": {"restarts": 1, "raw_samples": 8, "maxiter": 5}}


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Two experiments that share their trials, and one more figure without any."""
    grid = [{"problems": ["branin"], "methods": ["random", "ei"]}]
    common = {"grid": grid, "seeds": 1, "budget": {"initial": {"design": "uniform", "size": 3}, "rounds": 2}}
    common["diagnostics"] = {"alphas": [0.1, "1/sqrt(n)"]}
    study = {
        "study": "toy",
        "title": "A toy study",
        "citation": "Nobody, nowhere.",
        "methods": {"random": {"name": "random"}, "ei": {"name": "ei", "options": CHEAP}},
        "experiments": {
            "TOY-F1": {"title": "one", "quick": {}, **common},
            "TOY-F10": {"title": "ten", "quick": {}, **common},
            "TOY-F2": {"title": "not in quick", **common},
        },
    }
    return Plan(Config(studies=("toy",)), {"toy": parse(Study, study, "toy")}, {})


class Results:
    """Trials that were run, as the workflow leaves them."""

    def __init__(self, root: Path, plan: Plan) -> None:
        self.plan, self.root, self.store = plan, root, root / "store"
        self.uri = f"sqlite:///{root}/mlflow.db"
        self.chunks = [root / "trials" / f"{chunk.id}.parquet" for chunk in plan.chunks("TOY-F1")]

    def run(self, *observers: Any) -> None:
        """Run all trials, or find them done, and gather their records."""
        for chunk, path in zip(self.plan.chunks("TOY-F1"), self.chunks, strict=True):
            tables = [run_trial(s, self.store, self.root, observers).table(s) for s in chunk.specs()]
            records.write_table(path, records.concatenate(tables))

    def track(self, plan: Plan | None = None, uri: str | None = None) -> str:
        return import_trials(plan or self.plan, self.chunks, self.root / "quick", self.store, uri or self.uri)

    def client(self) -> MlflowClient:
        return MlflowClient(self.uri)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, plan: Plan) -> Results:
    """Trials that went well, not to be changed."""
    results = Results(tmp_path_factory.mktemp("results"), plan)
    results.run()
    return results


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without runs: making one takes seconds, copying one does not."""
    folder = tmp_path_factory.mktemp("empty")
    database = folder / "inner" / "mlflow.db"
    import_trials(Plan(Config(studies=("none",)), {}, {}), [], folder, folder, f"sqlite:///{database}")
    return database


def test_a_new_database(empty: Path) -> None:
    with closing(sqlite3.connect(empty)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("SELECT name FROM experiments").fetchall() == [("Default",)]


def copy(source: Path, target: Path) -> None:
    """Copy a database that may be open."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


@pytest.fixture
def results(done: Results, empty: Path, tmp_path: Path) -> Results:
    """The same trials, with a database of the test's own."""
    mine = Results(tmp_path, done.plan)
    mine.store, mine.chunks = done.store, done.chunks
    copy(empty, mine.root / "mlflow.db")
    return mine


def runs(client: MlflowClient, *experiments: str) -> dict[str, Run]:
    """Return all runs by name, and fail if two have the same."""
    ids = [client.get_experiment_by_name(name).experiment_id for name in experiments or ("toy",)]
    found = client.search_runs(ids)
    named = {run.info.run_name: run for run in found}
    assert len(named) == len(found)
    return named


def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every trial fail at its fifth evaluation."""
    original = Trial._evaluate

    def evaluate(self: Trial, X: Any) -> Any:
        if len(self.progress.rows) == 4:
            raise PlumblineError("the fifth evaluation went wrong")
        return original(self, X)

    monkeypatch.setattr(Trial, "_evaluate", evaluate)


def test_import(results: Results) -> None:
    line = results.track()
    assert line.startswith("2 trials imported, 0 there already, 0 of all failed;")
    assert line.endswith(f"mlflow ui --backend-store-uri {results.uri}")
    found = runs(results.client())
    assert set(found) == {"branin random seed 0", "branin ei seed 0", "summary of quick"}
    run = found["branin ei seed 0"]
    rows = records.read_records(results.chunks[1]).to_dict("records")
    assert run.info.status == "FINISHED"
    tags = {name: value for name, value in run.data.tags.items() if name.startswith("plumbline.")}
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", tags.pop("plumbline.commit", "0" * 40))
    assert tags == {
        "plumbline.trial": rows[0]["key"],
        "plumbline.study": "toy",
        "plumbline.experiment": "TOY-F1,TOY-F10",
        "plumbline.problem": "branin",
        "plumbline.method": "ei",
        "plumbline.seed": "0",
        "plumbline.preset": "quick",
        "plumbline.data": "generated",
    }
    params = run.data.params
    assert params["problem.name"] == "branin"
    assert params["problem.noise_std"] == "0.0"
    assert params["method.search.restarts"] == "1"
    assert params["method.model.kernel"] == "matern52"
    assert params["budget.initial.design"] == "uniform"
    assert params["budget.rounds"] == "2"


def test_metrics_are_those_of_the_record(results: Results) -> None:
    results.track()
    client = results.client()
    run = runs(client)["branin ei seed 0"]
    frame = records.read_records(results.chunks[1])

    def history(name: str) -> dict[int, float]:
        return {entry.step: entry.value for entry in client.get_metric_history(run.info.run_id, name)}

    for name in tracking.SCALARS:
        assert history(name) == frame.set_index("evaluation")[name].dropna().to_dict(), name
    for column in ("covered", "width"):
        for i, level in enumerate(("0.1", "1-sqrt-n")):
            expected = {row.evaluation: getattr(row, column)[i] for row in frame.iloc[3:].itertuples()}
            assert history(f"{column}.alpha-{level}") == expected
    seconds = frame.groupby("iteration").last().set_index("evaluation")["round_seconds"].to_dict()
    assert history("seconds.round") == seconds
    assert history("iteration") == {0: 0, 1: 0, 2: 0, 3: 1, 4: 2}
    stamps = [entry.timestamp for entry in client.get_metric_history(run.info.run_id, "best_y")]
    assert stamps == sorted(stamps)
    assert run.info.start_time <= stamps[0]
    assert abs(run.info.end_time - stamps[-1]) <= 2


def test_a_second_import_changes_nothing(results: Results) -> None:
    results.track()
    before = {name: run.to_dictionary() for name, run in runs(results.client()).items() if "seed" in name}
    assert results.track().startswith("0 trials imported, 2 there already")
    assert {name: run.to_dictionary() for name, run in runs(results.client()).items() if "seed" in name} == before


def test_an_experiment_that_shares_trials_is_added_to_their_tags(results: Results) -> None:
    config = results.plan.config
    results.track(Plan(config.model_copy(update={"experiments": ("TOY-F10",)}), results.plan.studies, {}))
    assert runs(results.client())["branin ei seed 0"].data.tags["plumbline.experiment"] == "TOY-F10"
    assert results.track().startswith("0 trials imported, 2 there already")
    assert runs(results.client())["branin ei seed 0"].data.tags["plumbline.experiment"] == "TOY-F10,TOY-F1"
    results.track(Plan(config.model_copy(update={"preset": "desk"}), results.plan.studies, {}))
    tags = runs(results.client())["branin ei seed 0"].data.tags
    assert tags["plumbline.experiment"] == "TOY-F10,TOY-F1,TOY-F2"
    assert tags["plumbline.preset"] == "quick,desk"


def test_a_crash_in_the_middle_is_mended(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tracking, "_log_metrics", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            results.track()
    assert [run.info.status for run in runs(results.client()).values()] == ["RUNNING"]
    assert results.track().startswith("2 trials imported, 0 there already")
    assert {run.info.status for run in runs(results.client()).values()} == {"FINISHED"}


def test_failed_trials(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = Results(tmp_path, results.plan)
    with monkeypatch.context() as patch:
        failing(patch)
        results.run()
    assert results.track().startswith("2 trials imported, 0 there already, 2 of all failed")
    assert results.track().startswith("0 trials imported, 2 there already, 2 of all failed")
    found = runs(results.client())
    run = found["branin random seed 0"]
    assert run.info.status == "FAILED"
    assert "the fifth evaluation went wrong" in run.data.tags["plumbline.error"]
    assert len(results.client().get_metric_history(run.info.run_id, "best_y")) == 4
    assert found["summary of quick"].data.metrics == {"trials": 2, "failures": 2}

    for folder in results.store.iterdir():
        (folder / "records.parquet").unlink()
        (folder / "error.json").unlink()
    results.run()
    assert results.track().startswith("2 trials imported, 0 there already, 0 of all failed")
    assert {run.info.status for run in runs(results.client()).values()} == {"FINISHED"}


def test_summary(results: Results) -> None:
    folder = results.root / "quick"
    names = ["figures/TOY-F1.png", "figures/TOY-F1.svg", "tables/TOY-F10.csv", "claims.csv"]
    for name in [*names, "figures/CAL-F1.png", "figures/TOY-F100.png", "figures/TOY-F1.pdf"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    client = results.client()

    def attached() -> list[str]:
        run = runs(client)["summary of quick"]
        tops = client.list_artifacts(run.info.run_id)
        inner = [e for top in tops if top.is_dir for e in client.list_artifacts(run.info.run_id, top.path)]
        return sorted(entry.path for entry in [*tops, *inner] if not entry.is_dir)

    results.track()
    assert attached() == sorted(names)
    first = runs(client)["summary of quick"]
    assert first.data.metrics == {"trials": 2, "failures": 0}
    assert first.data.tags["plumbline.summary"] == "quick"
    assert first.info.artifact_uri.startswith((results.root / "mlartifacts").as_uri())
    (folder / "figures/TOY-F1.svg").unlink()
    (folder / "claims.csv").unlink()
    results.track()
    assert attached() == ["figures/TOY-F1.png", "tables/TOY-F10.csv"]
    assert runs(client)["summary of quick"].info.run_id == first.info.run_id


def test_files_of_other_configurations_are_left_out(results: Results) -> None:
    other = results.root / "0123456789abcdef.parquet"
    other.write_bytes(results.chunks[0].read_bytes())
    results.chunks = [other]
    assert "0 trials imported" in results.track()
    assert "1 files of other configurations left out" in results.track()


def test_a_database_that_is_none(results: Results) -> None:
    (results.root / "mlflow.db").write_text("this is not a database, it is a sentence of some length")
    with pytest.raises(PlumblineError, match="move the file away"):
        results.track()


def test_a_database_of_another_version(results: Results) -> None:
    with sqlite3.connect(results.root / "mlflow.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")
    with pytest.raises(PlumblineError, match="mlflow db upgrade"):
        results.track()


def test_defaults_of_a_schema() -> None:
    inner = {"properties": {"b": {"default": 1}, "c": {"default": {"d": 2}}}}
    schema = {"$defs": {"I": inner}, "properties": {"a": {"$ref": "#/$defs/I", "default": {"b": 1}}, "e": {}}}
    assert tracking.resolve({"a": {"b": 5}, "x": {"y": 0}}, schema) == {
        "a": {"b": 5, "c": {"d": 2}},
        "x": {"y": 0},
    }


def test_numbers_that_are_none_are_left_out() -> None:
    row = {"evaluation": 0, "iteration": 0, "best_y": 1.0, "regret": float("nan"), "nll": None}
    row |= {"width": [float("inf"), 2.0], "notes": [("threshold (t)", 0.5)]}
    metrics = tracking.row_metrics(row, ["0.1", "0.2"])
    assert metrics == {"best_y": 1.0, "width.alpha-0.2": 2.0, "notes.threshold -t-": 0.5}


def test_long_options_are_cut() -> None:
    budget = {"initial": {"design": "uniform", "size": 3}, "rounds": 2}
    method = {"name": "random", "options": {"a": "x" * 9000}}
    spec = TrialSpec.model_validate({"problem": "branin", "method": method, "seed": 0, "budget": budget})
    assert len(tracking.run_params(spec)["method.a"]) == 6000


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the environment as it was: `LiveRun` sets how long MLflow waits."""
    for name, value in tracking.HASTE.items():
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
    monkeypatch.setattr(tracking, "GRACE", -1e9)
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
    assert streamed() == ("FAILED", [0, 1, 2, 3])
    again.start(rows[0]["key"], spec, 1)
    again.round(rows[4:], seconds)
    again.end(None)
    assert streamed() == ("FINISHED", [0, 1, 2, 3, 4])
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
    monkeypatch.setattr(tracking, "GRACE", 600.0)
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
