"""The lock, the conda environment and the package's metadata name the same versions; tests run on one thread each."""

import re
import tomllib
from pathlib import Path

import torch
import yaml

ROOT = Path(__file__).parents[1]


def normal(name: str) -> str:
    """Return a distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lines: list[str]) -> dict[str, str]:
    """Return versions by name."""
    return {normal(name): version for name, _, version in (line.strip().partition("==") for line in lines) if version}


LOCK, PEERS = (pins((ROOT / "envs" / f"{name}.lock").read_text().splitlines()) for name in ("requirements", "peers"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_dependency_is_pinned() -> None:
    wanted = {normal(name) for name in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"])}
    assert wanted <= LOCK.keys()


def test_peers_are_pinned_and_change_nothing_else() -> None:
    assert {normal(name) for name in PROJECT["optional-dependencies"]["peers"]} <= PEERS.keys()
    assert not PEERS.keys() & LOCK.keys()


def test_conda_has_the_same_versions() -> None:
    environment = yaml.safe_load((ROOT / "envs" / "plumbline.yaml").read_text())
    (pip,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    conda = pins(pip)
    assert conda.keys() == {normal(name) for name in PROJECT["dependencies"]}
    assert conda.items() <= LOCK.items()


def test_tests_run_on_one_thread() -> None:
    """More are several times slower where pytest's workers share the cores."""
    assert torch.get_num_threads() == 1
