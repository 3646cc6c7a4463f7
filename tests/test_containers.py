"""Dockerfile and Apptainer definition copy what the package is built from, and install alike."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCKER = (ROOT / "Dockerfile").read_text(encoding="utf-8")
APPTAINER = (ROOT / "apptainer.def").read_text(encoding="utf-8")


def let_through() -> list[str]:
    """What .dockerignore lets through."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "*"
    return [line.removeprefix("!") for line in lines if line.startswith("!")]


def files() -> list[str]:
    """What the Apptainer definition copies."""
    section = APPTAINER.split("%files\n", 1)[1].split("\n\n", 1)[0]
    pairs = [line.split() for line in section.splitlines()]
    assert all(there == f"/opt/plumbline/{here}" for here, there in pairs)
    return [here for here, _ in pairs]


def copied() -> set[str]:
    """What the Dockerfile copies."""
    lines = re.findall(r"^COPY (.+) \S+$", DOCKER, flags=re.MULTILINE)
    return {name for line in lines for name in line.split()}


def installs(text: str) -> list[str]:
    """The commands that install, with one spelling of the build of torch."""
    found = re.findall(r"(?:uv )?pip install [^;&\n]+", text.replace("\\\n", " "))
    return [" ".join(one.split()).replace("{{ TORCH }}", "$TORCH") for one in found]


def test_both_copy_the_same_and_all_of_it_is_there() -> None:
    assert files() == let_through()
    assert {name.partition("/")[0] for name in let_through()} == copied()
    assert [name for name in let_through() if not (ROOT / name).exists()] == []


def test_they_copy_all_that_the_package_holds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    held = [*wheel["packages"], *wheel["force-include"], project["project"]["readme"]]
    there = [Path(name) for name in let_through()]
    assert [name for name in held if not any(Path(name).is_relative_to(one) for one in there)] == []


def test_both_install_alike_from_the_locks() -> None:
    assert installs(DOCKER) == installs(APPTAINER)
    assert [one for one in installs(DOCKER) if "--require-hashes -r envs/hashed.lock" in one]
    assert re.search(r"^FROM (.*)$", DOCKER, re.MULTILINE)[1] == re.search(r"^From: (.*)$", APPTAINER, re.MULTILINE)[1]  # type: ignore[index]
    assert "ARG TORCH=locked" in DOCKER
    assert "    TORCH=locked\n" in APPTAINER


@pytest.mark.slow
def test_the_package_is_built_from_what_they_copy(tmp_path: Path) -> None:
    home = tmp_path / "plumbline"
    for name in let_through():
        source, place = ROOT / name, home / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        ".",
    ]
    subprocess.run(command, cwd=home, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "plumbline/_share/workflow/Snakefile" in names
    assert "plumbline/_share/results/reference/claims.csv" in names
