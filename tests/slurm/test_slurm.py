"""The profile `slurm` on a real cluster: `pytest -m slurm tests/slurm` as root; see docs/guide/slurm.md."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import psutil
import pyarrow as arrow
import pytest
import yaml

from plumbline.core.saved_state import load_state
from plumbline.store.spec import TrialSpec
from plumbline.trials import run_trial

if TYPE_CHECKING:  # only then: another folder's conftest.py may have taken the module's name
    from conftest import SnakemakeRun

PROFILE = Path(__file__).resolve().parents[2] / "slurm" / "config.yaml"

# The jobs that are killed note in runs.log that they ran: a retry shows there as another line. `tries`
# carries Snakemake's `attempt` into the shell; memory is left to the profile's default.
SNAKEFILE = r"""
rule all:
    localrule: True
    input:
        expand("cheap-{i}.txt", i=range(3)), "gpu.txt", "killed.txt", "cancelled.txt",

rule cheap:
    output: "cheap-{i}.txt"
    shell: "echo job=$SLURM_JOB_ID partition=$SLURM_JOB_PARTITION > {output}"

rule gpu:
    output: "gpu.txt"
    resources:
        gpu=1,
        slurm_partition="gpu",
    shell: "echo partition=$SLURM_JOB_PARTITION devices=${{CUDA_VISIBLE_DEVICES:-none}} > {output}"

# As if by the kernel for want of memory: SIGKILL, without a chance to clean up.
rule killed:
    output: "killed.txt"
    resources:
        tries=lambda wildcards, attempt: attempt,
    shell:
        '''
        granted=$(squeue --noheader --jobs=$SLURM_JOB_ID --format=%m)
        echo killed try={resources.tries} asked={resources.mem_mb} granted=$granted >> runs.log
        if [ {resources.tries} -eq 1 ]; then touch {output}; kill -KILL $$; fi
        test ! -e {output}
        echo done > {output}
        '''

# As if by an administrator: the whole Slurm job goes.
rule cancelled:
    output: "cancelled.txt"
    resources:
        tries=lambda wildcards, attempt: attempt,
    shell:
        '''
        granted=$(squeue --noheader --jobs=$SLURM_JOB_ID --format=%m)
        echo cancelled try={resources.tries} asked={resources.mem_mb} granted=$granted >> runs.log
        if [ {resources.tries} -eq 1 ]; then scancel $SLURM_JOB_ID; sleep 60; fi
        echo done > {output}
        '''
"""


def fields(line: str) -> dict[str, str]:
    """`a=1 b=2` as a dictionary."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


@pytest.mark.slurm
def test_profile_runs_gpu_jobs_and_retries_killed_ones(
    directory_with_profile: Path, snakemake_on_slurm: Callable[..., SnakemakeRun]
) -> None:
    directory = directory_with_profile
    (directory / "Snakefile").write_text(SNAKEFILE)

    run = snakemake_on_slurm(directory, timeout=180)

    assert run.returncode == 0, run.tail()
    cheap = [fields((directory / f"cheap-{i}.txt").read_text()) for i in range(3)]
    assert {job["partition"] for job in cheap} == {"cpu"}
    assert len({job["job"] for job in cheap}) == 3
    gpu = fields((directory / "gpu.txt").read_text())
    assert gpu["partition"] == "gpu"
    assert gpu["devices"] in {"0", "1"}
    runs = (directory / "runs.log").read_text().splitlines()
    for rule in ("killed", "cancelled"):
        assert (directory / f"{rule}.txt").read_text() == "done\n"
        attempts = [fields(line) for line in runs if line.startswith(f"{rule} ")]
        # Exactly two: retries must not multiply inside the Slurm job.
        assert [attempt["try"] for attempt in attempts] == ["1", "2"], run.tail()
        assert [attempt["granted"] for attempt in attempts] == [f"{attempt['asked']}M" for attempt in attempts]
        assert int(attempts[1]["asked"]) == 2 * int(attempts[0]["asked"])


def test_profile_keeps_out_of_known_traps() -> None:
    """Needs no cluster. The reasons are in the profile's comments."""
    profile = yaml.safe_load(PROFILE.read_text())
    assert profile["slurm-status-command"] == "squeue"
    # The plugin falls back to sacct below 3 x the interval; 300 s is Slurm's default MinJobAge.
    assert 3 * profile["slurm-init-seconds-before-status-checks"] <= 300
    assert profile["retries"] == 2
    assert profile["config"] == ["job=chunk"], "jobs of a cluster run side by side"
    assert "attempt" in profile["default-resources"]["mem_mb"]
    assert "attempt" in profile["default-resources"]["runtime"]


STUDY = {
    "study": "cluster",
    "title": "A study of the cluster",
    "citation": "-",
    "experiments": {
        "X-1": {
            "title": "Two methods",
            "grid": [{"tasks": ["branin"], "methods": ["random", "ei"]}],
            "seeds": 1,
            "table": {"kind": "final-values"},
            "quick": {},
        }
    },
}
METHODS = {
    "random": {"name": "random", "resources": {"mem_mb": 1000, "runtime": 5}},
    "ei": {"name": "ei", "resources": {"mem_mb": 1500, "runtime": 10}},
}
TASKS = {"branin": {"problem": "branin", "initial": {"design": "uniform", "size": 4}, "rounds": 120}}


def trials_of(folder: Path, method: str) -> list[psutil.Process]:
    """Return the processes that run trials of a method in a folder; other studies on the machine are not the test's."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            command = process.cmdline()
            if "plumbline" in command and "trials" in command and process.cwd() == str(folder.resolve()):
                found += [process] * any(f'"label":"{method}"' in argument for argument in command)
    return found


def saved_rounds(store: Path, method: str) -> int:
    """Return how many rounds of the only trial of a method its checkpoint has; -1 where there is none."""
    for path in store.glob("*/checkpoint.pt"):
        with suppress(OSError):  # the trial may end meanwhile
            if json.loads((path.parent / "spec.json").read_text())["method"]["name"] == method:
                length = load_state(path)["length"]
                log = path.with_name("log.arrow").read_bytes()[:length]
                return arrow.ipc.open_stream(log).read_all()["iteration"][-1].as_py()
    return -1


def once_under_way(store: Path, method: str, then: Callable[[], None]) -> threading.Thread:
    """Start what calls `then` when a trial of a method has three rounds saved."""

    def wait() -> None:
        deadline = time.monotonic() + 250
        while time.monotonic() < deadline:
            if saved_rounds(store, method) >= 3:
                then()
                return
            time.sleep(0.2)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.fixture
def study(repository_copy: Path) -> Path:
    """The repository with a study of two trials."""
    for folder, content in ("studies", STUDY), ("methods", METHODS), ("tasks", TASKS):
        place = repository_copy / "config" / folder
        shutil.rmtree(place)
        place.mkdir()
        (place / "cluster.yaml").write_text(yaml.safe_dump(content))
    return repository_copy


ALL_OF_IT = ("--config", "studies=[cluster]", "job=chunk")


def read_spec(path: Path) -> TrialSpec:
    return TrialSpec.model_validate_json(path.read_text())


def check_it_went_on(results: Path) -> None:
    """Check that the trial of `ei` was resumed, and ends as one that was never stopped: with the same bytes."""
    (log,) = (results / "logs" / "trials" / "branin" / "ei").glob("*.log")
    assert "going on after round" in log.read_text(), log.read_text()
    (folder,) = (path.parent for path in (results / "store").glob("*/spec.json") if read_spec(path).method.name == "ei")
    again = run_trial(read_spec(folder / "spec.json"), results / "again", results.parent / "data")
    assert (folder / "records.parquet").read_bytes() == again.records_path.read_bytes()


@pytest.mark.slurm
def test_a_preempted_trial_goes_on_where_it_was(study: Path, snakemake_on_slurm: Callable[..., SnakemakeRun]) -> None:
    """An urgent job takes the node: Slurm stops the job of the trial, and starts it again by itself."""
    results = study / "results"

    def preempt() -> None:
        for job in trials_of(study, "ei"):  # or the trial may end before Slurm looks at its queue
            job.suspend()
        command = ["sbatch", "--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=sleep 5"]
        subprocess.run(command, check=True)

    urgent = once_under_way(results / "store", "ei", preempt)
    run = snakemake_on_slurm(study, "--slurm-requeue", *ALL_OF_IT, timeout=500)
    urgent.join()
    assert run.returncode == 0, run.tail()
    assert "Trying to restart job" not in run.log, "Slurm did it, Snakemake did not notice"
    check_it_went_on(results)


@pytest.mark.slurm
def test_the_study_resumes_a_killed_trial(study: Path, snakemake_on_slurm: Callable[..., SnakemakeRun]) -> None:
    results = study / "results"

    def kill() -> None:
        """As the kernel does for want of memory."""
        for job in trials_of(study, "ei"):
            job.kill()

    killer = once_under_way(results / "store", "ei", kill)
    run = snakemake_on_slurm(study, *ALL_OF_IT, timeout=400)
    killer.join()
    assert run.returncode == 0, run.tail()
    check_it_went_on(results)
    records = pd.read_csv(results / "quick" / "tables" / "X-1.csv")
    assert set(records["method"]) == {"random", "ei"}
    assert "2 trials imported" in (results / "quick" / "only-cluster" / "tracked.txt").read_text()
