"""What another processor would do, by this one's libraries told to be another: docs/guide/reproducing.md."""

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

AS_IT_IS: dict[str, str] = {}
WITHOUT_AVX512 = {
    "OPENBLAS_CORETYPE": "Haswell",
    "MKL_CBWR": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL",
}
OLD = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "MKL_CBWR": "COMPATIBLE",
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL",
}
TWO_THREADS = {"OMP_NUM_THREADS": "2"}
MACHINES = {"without AVX-512": WITHOUT_AVX512, "old": OLD, "two threads": TWO_THREADS}

TRIALS = """
import json, sys
import plumbline as pb

methods = ["random", "logei-default"]
runs = {method: pb.run(method, "ackley-2", seeds=3, rounds=10, store=sys.argv[1]) for method in methods}
print(json.dumps({
    method: [list(run["y"]) for _, run in found.groupby("seed")] for method, found in runs.items()
}))
"""
VERDICTS = """
from plumbline.analysis.verdicts.judge import judge_reference
from plumbline.core.places import CHECKOUT, REFERENCE
from plumbline.study.plan import load_plan
from plumbline.study.settings import read_config

plan = load_plan(read_config(CHECKOUT / "config" / "config.yaml"), CHECKOUT)
found = judge_reference(plan.studies.values(), plan.library, CHECKOUT / REFERENCE)
print(found[["claim", "test", "verdict", "outcome"]].to_csv(index=False))
"""

LIBRARIES = """
import json
import scipy.linalg, torch
from numpy._core._multiarray_umath import __cpu_features__
from threadpoolctl import threadpool_info

blas = [one["architecture"] for one in threadpool_info() if one["internal_api"] == "openblas"]
aten = torch.backends.cpu.get_cpu_capability()
print(json.dumps({"ATen": aten, "BLAS": sorted(set(blas)), "NumPy": __cpu_features__["X86_V3"]}))
"""

Runs = dict[str, list[list[float]]]


def output(code: str, environment: dict[str, str], machine: dict[str, str], *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    features = {name: text for name, text in machine.items() if name != "NPY_DISABLE_CPU_FEATURES" or has_them(text)}
    done = subprocess.run(command, env={**environment, **features}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def has_them(features: str) -> bool:
    """Whether NumPy knows these features of processors: on another architecture it has others."""
    command = [sys.executable, "-W", "error", "-c", "import numpy"]
    done = subprocess.run(command, env={"NPY_DISABLE_CPU_FEATURES": features}, capture_output=True, check=False)
    return done.returncode == 0


def records(store: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in store.glob("*/records.parquet")}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the variables name processors of another architecture")
def test_the_libraries_do_as_they_are_told(one_core: dict[str, str]) -> None:
    told = json.loads(output(LIBRARIES, one_core, OLD))
    assert told == {"ATen": "DEFAULT", "BLAS": ["Nehalem"], "NumPy": False}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, one_core: dict[str, str]) -> tuple[Path, Runs]:
    """The store of trials on this machine, and their observations."""
    store = tmp_path_factory.mktemp("here")
    return store, json.loads(output(TRIALS, one_core, AS_IT_IS, store))


def test_the_same_machine_gives_the_same_bytes(
    here: tuple[Path, Runs], one_core: dict[str, str], tmp_path: Path
) -> None:
    output(TRIALS, one_core, AS_IT_IS, tmp_path)
    assert len(records(tmp_path)) == 6
    assert records(tmp_path) == records(here[0])


@pytest.mark.parametrize("machine", MACHINES)
def test_another_machine_has_the_same_problems_and_the_same_direction(
    machine: str, here: tuple[Path, Runs], one_core: dict[str, str], tmp_path: Path
) -> None:
    there = json.loads(output(TRIALS, one_core, MACHINES[machine], tmp_path))
    for before, after in zip(here[1]["random"], there["random"], strict=True):
        assert after == pytest.approx(before, abs=1e-11), "initial designs and noise do not depend on the machine"
    best = {method: [max(y) for y in found] for method, found in there.items()}
    assert sum(best["logei-default"]) > sum(best["random"])


@pytest.fixture(scope="module")
def verdicts(one_core: dict[str, str]) -> str:
    """The verdicts on the reference runs, as this machine judges them."""
    return output(VERDICTS, one_core, AS_IT_IS)


@pytest.mark.parametrize("machine", MACHINES)
def test_another_machine_judges_the_runs_on_file_alike(machine: str, verdicts: str, one_core: dict[str, str]) -> None:
    assert verdicts.count("\n") > 100
    assert output(VERDICTS, one_core, MACHINES[machine]) == verdicts
