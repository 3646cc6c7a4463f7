"""The provenance of results: code, versions, machine."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.libraries import distribution_of, installed_version
from plumbline.core.places import CHECKOUT, installed

PACKAGES = (
    "torch",
    "botorch",
    "gpytorch",
    "gymnasium",
    "box2d",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "pyarrow",
    "rdkit",
    "snakemake",
)

IMPORTED_AS = {"sklearn": "scikit-learn"}
"""Packages of `PACKAGES` by the names of their modules, where these differ by more than case."""

OF_OTHERS = ("GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_PREFIX")
"""Variables by which git tells its hooks about the repository that they are of."""

METADATA_KEY = "plumbline.store.provenance"
"""Metadata key of the provenance, as JSON, in Parquet files that no trial wrote."""


def _git(*arguments: str) -> str | None:
    if installed():
        return None  # a repository around it is another one
    # Of no other repository: neither one around an unpacked archive, nor one whose hook started this process.
    here = ["--git-dir", str(CHECKOUT / ".git"), "--work-tree", str(CHECKOUT)]
    try:
        done = subprocess.run(
            ["git", *here, *arguments],
            cwd=CHECKOUT,
            env={name: value for name, value in os.environ.items() if name not in OF_OTHERS},
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def read_provenance(metadata: Mapping[bytes, bytes] | None, path: Path) -> dict[str, Any]:
    """Return the provenance in the metadata of the Parquet file at `path`.

    Raises:
        PlumblineError: there is none, or it is damaged.
    """
    try:
        about = json.loads((metadata or {})[METADATA_KEY.encode()])
    except (KeyError, ValueError) as error:
        raise PlumblineError(f"{path} does not say where it comes from: delete it and run again") from error
    if not isinstance(about, dict):
        raise PlumblineError(f"{path} does not say where it comes from: delete it and run again")
    return about


@cache
def versions(*modules: str) -> dict[str, str]:
    """Return the versions of installed packages besides `PACKAGES`, by the names of their top-level modules."""
    named = {name: _version(name) for name in modules if IMPORTED_AS.get(name, name.lower()) not in PACKAGES}
    return {name: known for name, known in named.items() if known is not None}


def _version(module: str) -> str | None:
    """The version of the package that a top-level module is part of, None if no package says so."""
    distribution = distribution_of(module)
    return None if distribution is None else installed_version(distribution)


@cache
def provenance() -> dict[str, Any]:
    """Return commit and dirtiness of a checkout, versions of packages, host, CPU, GPU and threads of this process.

    GPU, thread count and `instructions` (those of the processor that torch chose, such as AVX512) are included only if
    torch is already loaded, since importing it is slow.
    """
    status = _git("status", "--porcelain", "--", ":/src", ":/config", ":/envs")
    facts: dict[str, Any] = {
        "commit": _git("rev-parse", "HEAD"),
        "dirty": None if status is None else bool(status),
        "version": installed_version("plumbline"),
        "python": platform.python_version(),
        "packages": {name: known for name in PACKAGES if (known := installed_version(name)) is not None},
        "host": platform.node(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "dtype": "float64",
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        facts["threads"] = torch.get_num_threads()
        facts["instructions"] = torch.backends.cpu.get_cpu_capability()
        facts["gpu"] = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return facts
