"""The server of a local database."""

import shutil
import socket
import sqlite3
import urllib.request
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from mlflow import MlflowClient
from toy_trials import Results, runs

from plumbline.core.errors import PlumblineError
from plumbline.core.places import CHECKOUT
from plumbline.tracking.addresses import command_of
from plumbline.tracking.serving import pages, serving


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def refused(uri: str, port: int) -> str:
    with pytest.raises(PlumblineError) as error, serving(uri, port):
        pass
    return str(error.value)


def test_what_there_is_not_is_said(tmp_path: Path) -> None:
    assert "is a server already" in refused("http://somewhere:5000", 5000)
    assert "`make study` makes them" in refused(f"sqlite:///{tmp_path}/none.db", 5000)
    assert not (tmp_path / "none.db").exists()


def test_a_port_that_is_taken(imported: Results) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert refused(imported.uri, port) == f"port {port} is taken: name another one with --port"


def test_a_server_that_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mlflow.db").touch()
    monkeypatch.setattr("sys.executable", shutil.which("false"))
    assert refused(f"sqlite:///{tmp_path}/mlflow.db", free_port()) == (
        f"MLflow's server ended with 1: see {tmp_path}/mlflow-ui.log"
    )


def test_pages_of_experiments(imported: Results) -> None:
    assert [name for name, _ in pages(imported.uri)] == ["quick/toy/TOY-F1", "quick/toy/TOY-F10"]
    for (_, page), line in zip(pages(imported.uri), imported.said.splitlines()[1:], strict=True):
        assert line.endswith(f"/{page}")


def test_the_command_of_a_checkout_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command_of("sqlite:///my results/mlflow.db") == "plumbline ui --uri 'sqlite:///my results/mlflow.db'"
    monkeypatch.chdir(CHECKOUT)
    assert command_of("sqlite:///results/mlflow.db") == "make ui"
    monkeypatch.chdir(tmp_path)
    assert command_of("sqlite:///results/mlflow.db") == "plumbline ui", "there is no Makefile"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["copied", "a folder #1, 100% ü", "all%20in%25"])
def test_a_copied_folder_shows_its_own_artifacts(
    name: str, results: Results, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a relative address, as in a checkout; the first folder is gone."""
    figure = results.root / "quick" / "figures" / "TOY-F1.png"
    figure.parent.mkdir(parents=True)
    figure.write_text("a figure")
    results.track()
    there = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(results.root, there / name)
    with closing(sqlite3.connect(results.root / "mlflow.db")) as connection:
        connection.execute("DELETE FROM runs")
        connection.commit()
    shutil.rmtree(results.root / "mlartifacts")
    monkeypatch.chdir(there)
    uri = f"sqlite:///{name}/mlflow.db"
    before = set(psutil.Process().children(recursive=True))  # of other tests in this process
    with serving(uri, free_port()) as server:
        found = runs(MlflowClient(server.address))
        for run, path, content in (
            ("figure and table", "figures/TOY-F1.png", b"a figure"),
            ("ei s0 branin", "spec.json", b'"seed": 0'),
        ):
            asked = f"{server.address}/get-artifact?path={path}&run_uuid={found[run].info.run_id}"
            assert content in urllib.request.urlopen(asked, timeout=60).read()
        started = set(psutil.Process().children(recursive=True)) - before
        assert len(started) == 2, "MLflow's command, and one worker"
        server.process.terminate()
        with pytest.raises(PlumblineError, match=r"^MLflow's server ended with -?\d+: see .*mlflow-ui\.log$"):
            server.wait()
    assert not set(psutil.Process().children(recursive=True)) - before
    assert {path.name for path in there.iterdir()} == {name}
