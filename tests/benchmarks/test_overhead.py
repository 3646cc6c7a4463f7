"""What the study adds to a round, to a start, and to a plan."""

import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest
import yaml

from plumbline.specs import TrialSpec
from plumbline.trials import run_trial
from plumbline.trials.checkpoint import Checkpoint
from plumbline.trials.log import Log

ROOT = Path(__file__).parents[2]


def test_record_and_checkpoint_beside_a_round(benchmark, tmp_path):
    """Asked for: at most 2% of a round."""
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
    """Asked for: under 0.5 s."""
    benchmark.pedantic(
        subprocess.run, ([sys.executable, "-m", "plumbline", "--help"],), {"capture_output": True}, rounds=5
    )


@pytest.mark.slow
def test_dag_of_5000_trials(benchmark, tmp_path):
    """Asked for: under 60 s."""
    for name in ("Snakefile", "workflow", "envs"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "config" / "studies").mkdir(parents=True)
    for name in ("config.yaml", "paper.yaml", "datasets.yaml", "schemas"):
        (tmp_path / "config" / name).symlink_to(ROOT / "config" / name)
    study = {
        "study": "large",
        "title": "5,000 trials",
        "citation": "-",
        "methods": {name: {"name": name} for name in ("ei", "logei", "pi", "ucb", "nei")},
        "experiments": {
            f"X-{i}": {
                "title": f"experiment {i}",
                "grid": [
                    {"problems": [f"levy-{5 + i}", f"ackley-{5 + i}"], "methods": ["ei", "logei", "pi", "ucb", "nei"]}
                ],
                "seeds": 50,
                "budget": {"initial": {"design": "sobol", "size": 10}, "rounds": 50},
                "table": {"kind": "final-values"},
            }
            for i in range(10)
        },
    }
    (tmp_path / "config" / "studies" / "large.yaml").write_text(yaml.safe_dump(study))
    command = [sys.executable, "-m", "snakemake", "-n", "--quiet", "all", "--configfile", "config/paper.yaml"]
    done = benchmark.pedantic(
        subprocess.run,
        ([*command, "--config", "studies=[large]"],),
        {"cwd": tmp_path, "capture_output": True, "text": True},
        rounds=1,
    )
    assert done.returncode == 0, done.stdout + done.stderr
