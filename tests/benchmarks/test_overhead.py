"""What the study adds to a round, to a start, and to a plan."""

import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest
import yaml

from plumbline.store.spec import TrialSpec
from plumbline.trials import run_trial
from plumbline.trials.checkpoint import Checkpoint
from plumbline.trials.log import Log

ROOT = Path(__file__).parents[2]


def test_record_and_checkpoint_beside_a_round(benchmark, tmp_path):
    """Required: at most 2% of a round."""
    spec = TrialSpec(
        problem="six-hump-camel",
        method="ei",
        seed=0,
        budget={"initial": {"design": "uniform", "size": 5}, "rounds": 30},
    )
    spent = 0.0

    def timed(function):
        def wrapper(*args):
            nonlocal spent
            started = perf_counter()
            result = function(*args)
            spent += perf_counter() - started
            return result

        return wrapper

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "save", timed(Checkpoint.save))
        patch.setattr(Log, "append", timed(Log.append))
        started = perf_counter()
        benchmark.pedantic(run_trial, (spec, tmp_path / "store", tmp_path), rounds=1)
        total = perf_counter() - started
    share = spent / total
    benchmark.extra_info["record and checkpoint, share of a round"] = share
    print(f"\nrecord and checkpoint: {100 * share:.2f}% of a round")


def test_help(benchmark):
    """Required: under 0.5 s."""
    benchmark.pedantic(
        subprocess.run, ([sys.executable, "-m", "plumbline", "--help"],), {"capture_output": True}, rounds=5
    )


def large_checkout(path: Path, experiments: int) -> None:
    """Make a checkout whose study has as many experiments of 10 tasks and methods with 50 seeds: 500 trials each."""
    methods = ("ei", "logei", "pi", "ucb", "nei")
    for name in ("Snakefile", "workflow", "envs"):
        (path / name).symlink_to(ROOT / name)
    (path / "config" / "studies").mkdir(parents=True)
    for name in ("config.yaml", "paper.yaml", "datasets.yaml", "schemas"):
        (path / "config" / name).symlink_to(ROOT / "config" / name)
    tasks, study = {}, {}
    for i in range(experiments):
        names = [f"levy-{5 + i}", f"ackley-{5 + i}"]
        tasks |= {name: {"problem": name, "initial": {"design": "sobol", "size": 10}, "rounds": 50} for name in names}
        study[f"X-{i}"] = {
            "title": f"experiment {i}",
            "grid": [{"tasks": names, "methods": list(methods)}],
            "seeds": 50,
            "table": {"kind": "final-values"},
        }
    about = {"study": "large", "title": "Many trials", "citation": "-", "experiments": study}
    (path / "config/studies/large.yaml").write_text(yaml.safe_dump(about))
    for folder, entries in {"methods": {name: {"name": name} for name in methods}, "tasks": tasks}.items():
        (path / "config" / folder).mkdir()
        (path / "config" / folder / "large.yaml").write_text(yaml.safe_dump(entries))


@pytest.mark.slow
@pytest.mark.parametrize(("trials", "chunk"), [(5_000, 10), (5_000, 1), (50_000, 10)])
def test_dag(benchmark, tmp_path, trials, chunk):
    """Required: 5,000 trials a job each under 30 s; 50,000 trials, ten seeds a job, under 6 minutes and 4 GB."""
    large_checkout(tmp_path, trials // 500)
    command = [sys.executable, "-m", "snakemake", "-n", "--quiet", "all", "--configfile", "config/paper.yaml"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    done = benchmark.pedantic(
        subprocess.run,
        ([*command, "--config", "studies=[large]", f"chunk={chunk}"],),
        {"cwd": tmp_path, "capture_output": True, "text": True},
        rounds=1,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # The largest of all children so far: of no earlier one where it has grown.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024**2
    benchmark.extra_info["GB at most"] = peak
    print(f"\n{trials} trials, {chunk} seeds a job: at most {peak:.2f} GB")
    assert peak < 4 or before / 1024**2 >= 4
