"""MLflow's own server on a local database, small enough for a laptop."""

import os
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Never
from urllib.parse import quote

from plumbline.core.errors import PlumblineError
from plumbline.tracking.addresses import ARTIFACTS, FIRST, HOST, OURS, PORT, TAG, database_of, view_address

PATIENCE = 180.0
"""Seconds in which a server begins to answer, also on a busy machine."""

SPARING = {
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # eight more processes, for jobs that studies do not have
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


@dataclass(frozen=True)
class Server:
    """A server that answers at an address."""

    address: str
    process: subprocess.Popen[bytes]
    log: Path

    def wait(self) -> Never:
        """Wait until the server ends.

        Raises:
            PlumblineError: it has ended.
        """
        raise PlumblineError(f"MLflow's server ended with {self.process.wait()}: see {self.log}")


@contextmanager
def serving(uri: str, port: int = PORT) -> Iterator[Server]:
    """Run a server in two processes while the block runs, and yield it when it answers.

    What the server says is in `mlflow-ui.log` beside the database.

    Args:
        uri: `sqlite:///` and the path of a database; the artifacts beside it are served, wherever both were made.
        port: to listen on, of this machine alone.

    Raises:
        PlumblineError: no such database, a port that is taken, a server that does not come up.
    """
    database = database_of(uri)
    if database is None:
        raise PlumblineError(f"{uri} is a server already: open it in a browser")
    if not database.is_file():
        raise PlumblineError(f"no runs at {database}: `make study` makes them, or `plumbline track`")
    _check_free(port)
    log = database.with_name("mlflow-ui.log")
    # As a URI: of a path, MLflow would take %25 for the escape of a percent sign.
    artifacts = (database.parent / ARTIFACTS).absolute().as_uri()
    where = ["--backend-store-uri", uri, "--artifacts-destination", artifacts]
    command = [sys.executable, "-m", "mlflow", "server", *where, "--host", HOST, "--port", str(port), "--workers", "1"]
    with log.open("w") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env={**os.environ, **SPARING})
    try:
        address = f"http://{HOST}:{port}"
        _wait(process, address, log)
        yield Server(address, process, log)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _check_free(port: int) -> None:
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise PlumblineError(f"port {port} is taken: name another one with --port") from error


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    """Wait until a server answers."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise PlumblineError(f"MLflow's server ended with {process.returncode}: see {log}")
        try:
            urllib.request.urlopen(f"{address}/health", timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return
    raise PlumblineError(f"MLflow's server has not answered in {PATIENCE:.0f} s: see {log}")


def pages(uri: str) -> list[tuple[str, str]]:
    """Return the names of the MLflow experiments in a database with the addresses of their first views, by name."""
    with closing(sqlite3.connect(f"file:{quote(str(database_of(uri)))}?mode=ro", uri=True)) as connection:
        found = connection.execute(
            "SELECT name, experiments.experiment_id FROM experiments JOIN experiment_tags USING (experiment_id)"
            " WHERE lifecycle_stage = 'active' AND key = ? ORDER BY name",
            (f"{TAG}{OURS}{FIRST}",),
        )
        return [(name, view_address(id, FIRST)) for name, id in found]
