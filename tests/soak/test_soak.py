"""A study whose processes are killed again and again, and whose files are damaged, ends as if nothing had happened.

At random moments trial processes get SIGKILL, SIGTERM, or SIGINT as by Ctrl-C, and Snakemake itself SIGKILL; jobs whose
Snakemake is gone go on and meet those of the next one. After some kills a bit of the log or of the checkpoint that the
trial left is flipped. PLUMBLINE_SOAK_KILLS says how often (100), PLUMBLINE_SOAK_SEED when.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from filelock import FileLock, Timeout

PARTS = ("workflow", "config", "src", "envs")
STUDY = """
study: soak
title: A study that is killed
citation: Nobody.
experiments:
  SOAK-T1:
    title: Many rounds that cost nothing
    grid: [{tasks: [free], methods: [dice]}]
    seeds: 4
    table: {kind: final-values, options: {metrics: [regret]}}
    quick: {}
  SOAK-T2:
    title: Few rounds that cost something
    grid: [{tasks: [dear], methods: [bound, sequence]}]
    seeds: 4
    table: {kind: final-values, options: {metrics: [regret]}}
    quick: {}
"""
METHODS = """
dice: {name: random}
sequence: {name: sobol}
bound: {name: ucb, options: {search: {restarts: 1, raw_samples: 8, maxiter: 5}}}
"""
TASKS = """
free: {problem: ackley-5, initial: {design: uniform, size: 3}, rounds: 5000}
dear: {problem: branin, initial: {design: uniform, size: 3}, rounds: 60, q: 2}
"""
JOBS = ("trials-free", "trials-dear")
"""One job per task, the second one of two methods."""
SNAKEMAKE = ("snakemake", "--cores", "2", "--until", *JOBS, "--nolock", "--rerun-incomplete", "--retries", "1000")
OF_SNAKEMAKE = 0.15
"""Share of the kills that hit Snakemake itself, and leave its jobs without a master."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
"""What a trial's process gets."""
OF_FILES = 0.3
"""Share of the kills of trials after which a bit of what they left is flipped."""


@dataclass
class Tally:
    """What was hit."""

    trials: int = 0
    snakemakes: int = 0
    midway: int = 0
    """Of the trials, those that were killed while one had a checkpoint to go on from."""
    flips: int = 0
    """Bits of logs and checkpoints that were flipped."""

    @property
    def kills(self) -> int:
        return self.trials + self.snakemakes


class Checkout:
    """A copy of the repository with the study in it."""

    def __init__(self, root: Path, path: Path, env: dict[str, str]) -> None:
        self.path = path
        self.env = {**env, "PYTHONPATH": str(path / "src")}
        path.mkdir()
        shutil.copy2(root / "Snakefile", path)
        for part in PARTS:
            shutil.copytree(root / part, path / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for folder, text in (("studies", STUDY), ("methods", METHODS), ("tasks", TASKS)):
            shutil.rmtree(path / "config" / folder)
            (path / "config" / folder).mkdir()
            (path / "config" / folder / "soak.yaml").write_text(text)

    def start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", *SNAKEMAKE, "--config", "studies=[soak]"]
        with (self.path / "snakemake.log").open("ab") as log:
            return subprocess.Popen(command, cwd=self.path, env=self.env, stdout=log, stderr=log)

    def processes(self) -> list[psutil.Process]:
        """Return the processes that run trials, masters or none."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                words = process.cmdline()
                if "plumbline" in words and "trials" in words and process.cwd() == str(self.path):
                    found.append(process)
        return found

    def records(self) -> dict[str, bytes]:
        store = self.path / "results/store"
        return {path.parent.name: path.read_bytes() for path in store.glob("*/records.parquet")}

    def midway(self) -> int:
        return len(list((self.path / "results/store").glob("*/checkpoint.pt")))

    def damage(self, chance: random.Random) -> bool:
        """Flip a bit of the log or of the checkpoint of a trial that no process has, if there is one."""
        checkpoints = sorted((self.path / "results/store").glob("*/checkpoint.pt"))
        for path in chance.sample(checkpoints, len(checkpoints)):
            with suppress(Timeout), FileLock(path.parent / ".lock", timeout=0):
                files = [one for one in (path, path.with_name("log.arrow")) if one.is_file()]
                if files:
                    flip(chance.choice(files), chance)
                    return True
        return False


def flip(path: Path, chance: random.Random) -> None:
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def run_with_kills(checkout: Checkout, chance: random.Random, wanted: int, tally: Tally) -> None:
    """Run the study to its end, and kill some process of it every few seconds while fewer than `wanted` were."""
    master = checkout.start()
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                master.wait(timeout=chance.uniform(0.5, 8.0) if tally.kills < wanted else None)
            if master.poll() == 0:
                return
            if master.poll() is not None:
                master = checkout.start()
            elif chance.random() < OF_SNAKEMAKE:
                master.send_signal(signal.SIGKILL)
                master.wait()
                tally.snakemakes += 1
            elif victims := checkout.processes():
                midway = checkout.midway()
                with suppress(psutil.Error):
                    victim = chance.choice(victims)
                    victim.send_signal(chance.choice(SIGNALS))
                    victim.wait(timeout=60)
                    tally.trials += 1
                    tally.midway += midway > 0
                if chance.random() < OF_FILES:
                    tally.flips += checkout.damage(chance)
    finally:
        master.kill()
        master.wait()
        for process in checkout.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
                process.wait()


@pytest.mark.soak
def test_a_study_that_is_killed_is_the_same_study(
    request: pytest.FixtureRequest, root: Path, one_core: dict[str, str], tmp_path: Path
) -> None:
    if "soak" not in request.config.getoption("markexpr"):
        pytest.skip("it takes ten minutes: `make soak` runs it")
    wanted = int(os.environ.get("PLUMBLINE_SOAK_KILLS", "100"))
    chance = random.Random(int(os.environ.get("PLUMBLINE_SOAK_SEED", "0")))
    quiet, killed = (Checkout(root, tmp_path / name, one_core) for name in ("quiet", "killed"))
    assert quiet.start().wait() == 0, (quiet.path / "snakemake.log").read_text()
    expected = quiet.records()
    assert expected
    tally, passes = Tally(), 0
    while tally.kills < wanted:
        shutil.rmtree(killed.path / "results", ignore_errors=True)
        run_with_kills(killed, chance, wanted, tally)
        passes += 1
        assert killed.records().keys() == expected.keys()
        assert killed.records() == expected
        assert killed.midway() == 0, "a checkpoint is left"
        print(
            f"\npass {passes}: {len(expected)} trials the same, {tally.kills} kills so far: {tally.trials} of trials "
            f"({tally.midway} with a checkpoint), {tally.snakemakes} of Snakemake, {tally.flips} bits flipped",
            flush=True,
        )
