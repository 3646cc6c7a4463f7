"""What the study adds to trials of very many evaluations: random search on a function that costs nothing."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest

from plumbline.store.folder import TrialFolder
from plumbline.store.keys import trial_key
from plumbline.store.spec import TrialSpec

RUN = """
import json, resource, sys, time
from pathlib import Path
import torch
torch.set_num_threads(1)
from plumbline.specs import TrialSpec
from plumbline.trials import run_trial

class Starts:
    def start(self, key, spec, done, best):
        print(json.dumps({"done": done}), flush=True)
        self.first = True
    def round(self, rows, seconds):
        if self.first:
            print(json.dumps({"going": time.time()}), flush=True)
        self.first = False
    def end(self, error):
        assert error is None, error

spec, root = TrialSpec.model_validate_json(sys.argv[1]), Path(sys.argv[2])
started, cpu = time.time(), time.process_time()
print(json.dumps({"ready": started}), flush=True)
run_trial(spec, root, root, [Starts()])
used = resource.getrusage(resource.RUSAGE_SELF)
written = {}
for line in open("/proc/self/io"):
    name, _, value = line.partition(": ")
    written[name] = int(value)
print(json.dumps({
    "cpu": time.process_time() - cpu, "wall": time.time() - started, "rss": used.ru_maxrss / 2**20,
    "written": written["wchar"] / 1e9,
}))
"""
"""Runs a trial and prints what it took: seconds, GB resident, GB written."""


SHOWN = ("cpu", "wall", "rss", "written", "tenths")


def long_trial(evaluations: int, d: int, q: int) -> TrialSpec:
    initial = 10 * q
    return TrialSpec.model_validate(
        {
            "problem": f"ackley-{d}",
            "method": "random",
            "seed": 0,
            "budget": {
                "initial": {"design": "uniform", "size": initial},
                "rounds": (evaluations - initial) // q,
                "q": q,
            },
        }
    )


def start(spec: TrialSpec, root: Path, env: dict[str, str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", RUN, spec.model_dump_json(), str(root)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


def finish(job: "subprocess.Popen[str]") -> dict[str, float]:
    output, _ = job.communicate()
    assert job.returncode == 0
    facts: dict[str, float] = {}
    for line in output.splitlines():
        facts |= json.loads(line)
    return facts


def tenths(folder: TrialFolder) -> float:
    """Return how dear the last tenth of the rounds was, in units of the first."""
    seconds = parquet.read_table(folder.timings_path)["round_seconds"].to_numpy()[1:]
    tenth = len(seconds) // 10
    return float(np.sum(seconds[-tenth:]) / np.sum(seconds[:tenth]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("evaluations", "d", "q"), [(80_000, 256, 20), (20_000, 12, 1)], ids=["80000-256-20", "20000-12-1"]
)
def test_bookkeeping(benchmark, tmp_path, one_core, evaluations, d, q):
    """Required: under 60 s, 1 GB written, 1.5 GB resident; late rounds at most 1.5 times as dear as early ones."""
    spec = long_trial(evaluations, d, q)
    facts = benchmark.pedantic(lambda: finish(start(spec, tmp_path, one_core)), rounds=1)
    facts["tenths"] = tenths(TrialFolder(tmp_path, trial_key(spec, tmp_path)))
    benchmark.extra_info.update({name: facts[name] for name in SHOWN})
    print(f"\n{evaluations} evaluations, d = {d}, q = {q}: " + ", ".join(f"{k} {facts[k]:.3g}" for k in SHOWN))
    assert facts["cpu"] < 60
    assert facts["written"] < 1
    assert facts["rss"] < 1.5
    assert facts["tenths"] < 1.5


@pytest.mark.slow
def test_going_on_with_a_long_trial(benchmark, tmp_path, one_core):
    """Required: within 3 s of the interpreter being ready, and the same bytes in the end."""
    spec = long_trial(80_000, 256, 20)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    seconds = finish(start(spec, whole, one_core))["wall"]
    job = start(spec, parts, one_core)
    assert job.stdout is not None
    for line in job.stdout:
        if "going" in line:
            time.sleep(random.Random(1).uniform(0.5, 0.8) * seconds)
            break
    os.kill(job.pid, signal.SIGKILL)
    job.wait()
    job.stdout.close()
    key = trial_key(spec, tmp_path)
    assert not TrialFolder(parts, key).done
    facts = benchmark.pedantic(lambda: finish(start(spec, parts, one_core)), rounds=1)
    print(f"\ngoing on after round {facts['done']}: {facts['going'] - facts['ready']:.2f} s, {facts['rss']:.2f} GB")
    assert facts["done"] > 0
    assert facts["going"] - facts["ready"] < 3
    assert TrialFolder(parts, key).records_path.read_bytes() == TrialFolder(whole, key).records_path.read_bytes()
