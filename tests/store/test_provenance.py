"""Where a result comes from."""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from plumbline.store import provenance as module
from plumbline.store.provenance import PACKAGES, provenance


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    provenance.cache_clear()
    yield
    provenance.cache_clear()


def test_facts() -> None:
    facts = provenance()
    assert set(facts["packages"]) == set(PACKAGES)
    assert facts["dtype"] == "float64"
    assert facts["cpus"] >= 1
    assert facts["python"] == sys.version.split()[0]
    json.dumps(facts)


def test_the_commit_is_that_of_the_repository(root: Path) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    if head.returncode:
        pytest.skip("not a git checkout")
    assert provenance()["commit"] == head.stdout.strip()
    assert provenance()["dirty"] in (True, False)


def test_dirty_is_what_git_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for status, dirty in ((" M src/x.py", True), ("", False)):
        provenance.cache_clear()
        monkeypatch.setattr(module, "_git", lambda *arguments, status=status: status)
        assert provenance()["dirty"] is dirty


def test_it_is_of_no_other_repository(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of none that a hook is of, and of none around an unpacked archive."""
    ours = provenance()["commit"]
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init"], [*author, "commit", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)
    for name, value in {"GIT_DIR": ".git", "GIT_WORK_TREE": "", "GIT_INDEX_FILE": ".git/index"}.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    provenance.cache_clear()
    assert provenance()["commit"] == ours
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(module, "CHECKOUT", tmp_path / "unpacked")
    (tmp_path / "unpacked").mkdir()
    provenance.cache_clear()
    assert provenance()["commit"] is None


def test_without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    facts = provenance()
    assert facts["commit"] is None
    assert facts["dirty"] is None


def test_the_slurm_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    assert provenance()["slurm_job"] == "42"


def test_torch_is_not_imported_for_it(one_core: dict[str, str]) -> None:
    code = (
        "import sys; from plumbline.store.provenance import provenance; facts = provenance(); "
        "assert 'torch' not in sys.modules; assert 'threads' not in facts"
    )
    subprocess.run([sys.executable, "-c", code], env=one_core, check=True)


def test_threads_where_torch_is_there() -> None:
    import torch

    assert provenance()["threads"] == torch.get_num_threads()
    assert provenance()["instructions"] == torch.backends.cpu.get_cpu_capability()


def test_versions_go_by_the_names_of_modules() -> None:
    found = module.versions("torch", "sklearn", "Box2D", "yaml", "linear_operator", "no_such_module")
    assert set(found) == {"yaml", "linear_operator"}
    assert found["yaml"] == version("PyYAML")
    assert found["linear_operator"] == version("linear_operator")
