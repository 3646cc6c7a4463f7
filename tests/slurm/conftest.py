"""A Slurm cluster for the tests of this folder, and Snakemake on it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = Path(__file__).with_name("cluster.sh")
SLURM_CONF = Path("/etc/slurm/slurm.conf")
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch")

# Overrides the profile's patience, which suits real clusters and network file systems.
FAST = ("--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "5")


@dataclass(frozen=True)
class SnakemakeRun:
    """One finished call of Snakemake."""

    returncode: int
    log: str
    seconds: float

    def tail(self, lines: int = 60) -> str:
        return tail(self.log, lines)


def tail(text: str, lines: int = 60) -> str:
    return "\n".join(text.splitlines()[-lines:])


def reason_to_skip() -> str | None:
    """What keeps this machine from running the cluster, if anything does."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return "the cluster tests share one cluster: run them without pytest-xdist (-n 0)"
    if os.geteuid() != 0:
        return "not root: the cluster's daemons need it"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    if missing := [command for command in NEEDED if shutil.which(command, path=path) is None]:
        return f"not installed: {', '.join(missing)} (apt-get install slurm-wlm munge)"
    if SLURM_CONF.exists() and "cluster.sh" not in SLURM_CONF.read_text().split("\n", 1)[0]:
        return f"{SLURM_CONF} is not of tests/slurm/cluster.sh: this machine belongs to a Slurm cluster already"
    return None


def cluster(command: str) -> subprocess.CompletedProcess[str]:
    """`cluster.sh start|stop|status`, with everything that it printed in `stdout`."""
    return subprocess.run(
        [CLUSTER, command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
        check=False,
    )


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[None]:
    """A real Slurm cluster of one node; one that was running before the tests is used and left running."""
    if reason := reason_to_skip():
        pytest.skip(reason)
    was_running = cluster("status").returncode == 0
    started = cluster("start")
    assert started.returncode == 0, f"cluster.sh start failed:\n{started.stdout}"
    try:
        yield
    finally:
        if not was_running:
            stopped = cluster("stop")
            assert stopped.returncode == 0, f"cluster.sh stop failed:\n{stopped.stdout}"


def run_with_profile(directory: Path, *arguments: str, timeout: float = 120) -> SnakemakeRun:
    """Run `snakemake --profile slurm *arguments` in `directory`, which contains the folder `slurm`.

    A call that takes more than `timeout` seconds is killed, its jobs are cancelled, and the test fails with
    the log's end: with Slurm, what goes wrong often shows as waiting for ever.
    """
    command = [sys.executable, "-m", "snakemake", "--profile", "slurm", *FAST, *arguments]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SNAKEMAKE_", "SLURM_"))}
    # Rules call programs of the environment that runs the tests, whether it is activated or not.
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    log_file = directory / "snakemake-call.log"
    begin = time.monotonic()
    with log_file.open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running after {timeout:g} s: {' '.join(command)}\n{tail(log_file.read_text())}")
        finally:
            if process.poll() is None:  # too late, or the tests were interrupted
                os.killpg(process.pid, signal.SIGKILL)  # a waiting Snakemake ignores SIGTERM
                process.wait()
                subprocess.run(["scancel", "--user=root"], timeout=30, check=False)
    return SnakemakeRun(process.returncode, log_file.read_text(), time.monotonic() - begin)


@pytest.fixture
def snakemake_on_slurm(slurm_cluster: None) -> Callable[..., SnakemakeRun]:
    """`run_with_profile(directory, *arguments, timeout=...)`, with the cluster running."""
    return run_with_profile


@pytest.fixture
def directory_with_profile(tmp_path: Path) -> Path:
    """An empty folder but for a copy of the repository's profile `slurm`."""
    shutil.copytree(ROOT / "slurm", tmp_path / "slurm")
    return tmp_path


@pytest.fixture
def repository_copy(tmp_path: Path) -> Path:
    """The repository without its results."""
    for name in ("workflow", "config", "slurm", "envs", "src"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copyfile(ROOT / "Snakefile", tmp_path / "Snakefile")
    return tmp_path
