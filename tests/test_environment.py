"""The locks, the conda environment and the package's metadata name the same versions; tests run on one thread each."""

import ast
import importlib.util
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType

import pytest
import torch
import yaml
from packaging.markers import Marker

ROOT = Path(__file__).parents[1]


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXPORT = load(ROOT / "envs" / "export.py")
LOCK, PEERS, HASHED = (EXPORT.pins(ROOT / "envs" / f"{name}.lock") for name in ("requirements", "peers", "hashed"))
PLATFORMS = {
    "Linux, x86-64": {"sys_platform": "linux", "platform_machine": "x86_64"},
    "Linux, aarch64": {"sys_platform": "linux", "platform_machine": "aarch64"},
    "macOS, arm64": {"sys_platform": "darwin", "platform_machine": "arm64"},
}
PYTHON = {
    "python_full_version": "3.11.7",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
}
ACCELERATORS = re.compile(r"nvidia-|cuda-|triton$|setuptools$")
"""What torch needs beside itself, where its build is one for CUDA."""


def version(pin: str) -> str:
    """Return the version of a pin, without its marker."""
    return re.split(r"[\s;\\]", pin.partition("==")[2].strip())[0]


def needed(pin: str, **platform: str) -> bool:
    """Return whether a pin is for a platform, by its marker."""
    marker = pin.rstrip("\\ ").partition(";")[2].strip()
    usual = {
        "python_full_version": "3.11.7",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }
    return not marker or Marker(marker).evaluate({**usual, **platform})


def test_every_dependency_is_pinned() -> None:
    assert {*EXPORT.dependencies(), *EXPORT.dependencies("dev")} <= LOCK.keys()


def imported_by_the_package() -> set[str]:
    """Return the top-level modules of other distributions that the package imports, anywhere in its files."""
    names: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module)
    return {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"plumbline"}


@pytest.mark.slow
def test_every_import_is_of_a_dependency() -> None:
    """In an environment with the declared dependencies alone, nothing is missing: not by the way of another one."""
    declared = {*EXPORT.dependencies(), *EXPORT.dependencies("peers")}
    parts = {"pydantic_core": "pydantic", "ConfigSpace": "smac"}
    providers = packages_distributions()
    for module in imported_by_the_package():
        found = {EXPORT.normal(name) for name in providers.get(module, ())} | {parts.get(module, "")}
        if found != {""}:  # a peer that is not installed
            assert found & declared, f"{module}, of {found}"


def test_peers_are_pinned_and_change_nothing_else() -> None:
    assert set(EXPORT.dependencies("peers")) <= PEERS.keys()
    assert not PEERS.keys() & LOCK.keys()


def test_conda_has_the_same_versions() -> None:
    text = (ROOT / "envs" / "plumbline.yaml").read_text(encoding="utf-8")
    assert text == EXPORT.conda_environment(), "run `make lock`"
    (pip,) = (entry["pip"] for entry in yaml.safe_load(text)["dependencies"] if isinstance(entry, dict))
    assert {EXPORT.named(line) for line in pip} == set(EXPORT.dependencies())


@pytest.mark.parametrize("platform", PLATFORMS)
def test_checksums_are_of_the_same_versions(platform: str) -> None:
    """`make lock` writes them."""
    on = PLATFORMS[platform]
    here, there = ({name: version(pin) for name, pin in lock.items() if needed(pin, **on)} for lock in (LOCK, HASHED))
    only = here.keys() - there.keys()
    assert only <= {"greenlet"}, "SQLAlchemy asks for it on some machines"
    assert {name for name in there.keys() - here.keys() if not ACCELERATORS.match(name)} <= {"appnope"}
    assert [name for name in here.keys() & there.keys() if here[name] != there[name]] == []
    assert set(EXPORT.dependencies()) - there.keys() <= {"box2d"}
    assert "torch" in there


def test_every_version_has_checksums_and_no_index_is_named() -> None:
    text = (ROOT / "envs" / "hashed.lock").read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=[\w])", text.split("\n", text.count("\n#") + 1)[-1])
    assert len(blocks) == len(HASHED)
    for block in blocks:
        assert re.search(r"\\\n +--hash=sha256:[0-9a-f]{64}", block), block[:60]
    for path in (ROOT / "envs").glob("*.*"):
        assert "://" not in path.read_text(encoding="utf-8"), path


def test_the_usual_marker_is_left_out() -> None:
    lock = "a==1 ; x \\\n    --hash=sha256:0\nb==2 ; x and y\nc==3 ; x\n"
    assert EXPORT.without_usual_marker(lock) == "a==1 \\\n    --hash=sha256:0\nb==2 ; x and y\nc==3\n"


def test_tests_run_on_one_thread() -> None:
    """More are several times slower where pytest's workers share the cores."""
    assert torch.get_num_threads() == 1


def test_the_version_is_one() -> None:
    version = EXPORT.tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == version
    newest = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert next(name for name in newest if name != "Unreleased") == version
