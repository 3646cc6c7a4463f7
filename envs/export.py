"""Write what follows from the pins of requirements.lock and the dependencies of pyproject.toml: `make lock`.

requirements.lock is edited by hand, and says which version of everything is installed. From it come

* hashed.lock, with the checksum of every file that an index has of these versions, on the platforms of
  pyproject.toml (`tool.uv`). It is written by
  `uv pip compile`, which needs the network. A `uv.lock` would name the index in each of its lines.
* plumbline.yaml, for conda.
"""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

ENVS = Path(__file__).resolve().parent
ROOT = ENVS.parent

PYTHON = "3.11.5"
"""The oldest that all pins are for."""

HASHED = """\
# Written by `make lock` from requirements.lock: the same versions with checksums, for Linux (x86-64, aarch64) and macOS
# (arm64), Python 3.11.5 to 3.14. On Linux torch is PyTorch's own build for CUDA, with what it needs:
#     pip install --require-hashes -r envs/hashed.lock
"""

CONDA = """\
# Written by `make lock` from requirements.lock, for `snakemake --sdm conda`: the interpreter comes from conda, the
# packages from PyPI. The package itself is taken from the checkout: workflow/rules/common.smk puts src on PYTHONPATH.
name: plumbline
channels:
  - conda-forge
  - nodefaults
dependencies:
  - python =3.11
  - pip
  - pip:
"""


def normal(name: str) -> str:
    """Return a distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirement: str) -> str:
    """Return the normal name of what a requirement asks for, whatever its versions, extras and markers."""
    found = re.match(r"[\w.-]+", requirement)
    assert found, requirement
    return normal(found[0])


def pins(lock: Path) -> dict[str, str]:
    """Return the lines of a lock, with versions and markers, by normal name."""
    lines = (line.strip() for line in lock.read_text(encoding="utf-8").splitlines())
    return {named(line): line for line in lines if line and not line.startswith(("#", "--hash"))}


def dependencies(extra: str = "") -> list[str]:
    """Return the normal names of what the package needs, or of an extra of it, as pyproject.toml lists them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [named(one) for one in (project["optional-dependencies"][extra] if extra else project["dependencies"])]


def conda_environment() -> str:
    """Return the text of plumbline.yaml."""
    versions = pins(ENVS / "requirements.lock")
    lines = (versions[name] for name in sorted(dependencies()))
    return CONDA + "".join(f"      - {line}\n" for line in lines)


def hashed_lock() -> str:
    """Return the text of hashed.lock, as `uv` finds it for the platforms in pyproject.toml."""
    command = ["uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--python-version", PYTHON]
    command += ["--no-header", "--no-annotate", "--extra", "dev", "--constraints", "envs/requirements.lock"]
    done = subprocess.run([*command, "pyproject.toml"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return HASHED + without_usual_marker(done.stdout)


MARKER = re.compile(r" ; (.+?)(?= \\$|$)", flags=re.MULTILINE)


def without_usual_marker(lock: str) -> str:
    """Return a lock without the marker that most of its lines have: that of all platforms."""
    (usual, _), *_ = Counter(MARKER.findall(lock)).most_common(1)
    return MARKER.sub(lambda found: "" if found[1] == usual else found[0], lock)


def main() -> None:
    """Write both files, the one that needs the network last."""
    pinned = pins(ENVS / "requirements.lock")
    if missing := [one for one in (*dependencies(), *dependencies("dev")) if one not in pinned]:
        sys.exit(f"envs/requirements.lock has no version of {', '.join(missing)}: pin it, and what it needs")
    (ENVS / "plumbline.yaml").write_text(conda_environment(), encoding="utf-8")
    (ENVS / "hashed.lock").write_text(hashed_lock(), encoding="utf-8")


if __name__ == "__main__":
    main()
