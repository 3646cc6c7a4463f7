"""The package as people install it: from a wheel, away from the checkout, where it may not be written to."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.store.keys import trial_key
from plumbline.store.spec import TrialSpec

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
RESULTS = ("results/reference", "results/atlas")


def checked(*command: object, cwd: Path, env: dict[str, str]) -> str:
    """Run a command, and return its output."""
    done = subprocess.run([*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Installed:
    """The package in an environment of its own, which sees the dependencies of this one."""

    def __init__(self, home: Path) -> None:
        clean = {name: text for name, text in os.environ.items() if name != "PYTHONPATH" and "PLUMBLINE" not in name}
        self.env = {**clean, "XDG_CACHE_HOME": str(home / "cache"), "COLUMNS": "120"}
        self.home, self.folder = home, home / "an environment"
        checked(sys.executable, "-m", "venv", "--without-pip", self.folder, cwd=home, env=self.env)
        self.python = self.folder / "bin" / "python"
        (self.packages,) = self.folder.glob("lib/python*/site-packages")
        (self.packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        checked(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", home / "wheel", ROOT, cwd=home, env=self.env)
        (self.wheel,) = (home / "wheel").glob("plumbline-*.whl")
        checked(*pip, "--python", self.python, "install", "--no-deps", self.wheel, cwd=home, env=self.env)
        self.folder.chmod(0o555)
        for path in self.folder.rglob("*"):
            if not path.is_symlink():
                path.chmod(0o555)
        self.before = self.files()

    def files(self) -> dict[Path, tuple[int, int]]:
        """Return what is installed; where the tests are root's, who may write anything, it says whether they did."""
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in self.folder.rglob("*")}

    def plumbline(self, *arguments: object, cwd: Path | None = None) -> str:
        """Run a command of plumbline, in a folder with nothing in it unless another is named."""
        return checked(self.folder / "bin" / "plumbline", *arguments, cwd=cwd or self.elsewhere(), env=self.env)

    def elsewhere(self) -> Path:
        """Return a folder away from the checkout."""
        folder = self.home / "else where"
        folder.mkdir(exist_ok=True)
        return folder


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def study(installed: Installed) -> Path:
    """A workspace in a path with a space."""
    installed.plumbline("init", "my study")
    return installed.elsewhere() / "my study"


@pytest.fixture(autouse=True)
def _nothing_is_written_beside_the_package(installed: Installed) -> Iterator[None]:
    yield
    assert installed.files() == installed.before


def test_it_has_all_that_a_checkout_has(installed: Installed) -> None:
    home = installed.packages / "plumbline"
    for here, there in {
        "src/plumbline": home,
        **{part: home / "_share" / part for part in ("config", "workflow", "profiles", "slurm", *RESULTS)},
    }.items():
        files = [path.relative_to(ROOT / here) for path in (ROOT / here).rglob("*") if path.is_file()]
        wanted = [path for path in files if "__pycache__" not in path.parts]
        assert wanted
        assert [str(path) for path in wanted if not (there / path).is_file()] == []
    assert installed.wheel.stat().st_size < 60e6


def test_listings(installed: Installed) -> None:
    assert "logei-default" in installed.plumbline("methods")
    assert installed.plumbline("verdicts", "--csv").startswith("claim,")


def test_a_trial_has_the_key_that_it_has_in_a_checkout(installed: Installed) -> None:
    output = installed.plumbline("trial", "--method", "logei-default", "--task", "ackley-2", "--rounds", 2)
    store = installed.elsewhere() / "results" / "store"
    (folder,) = store.iterdir()
    assert str(folder.relative_to(installed.elsewhere())) in output
    spec = TrialSpec.model_validate_json((folder / "spec.json").read_text())
    assert folder.name == trial_key(spec, ROOT / "data")


def test_the_python_interface(installed: Installed) -> None:
    code = """
import plumbline as pb
runs = pb.runs("CBO-X1")
assert {"ucb", "cucb"} <= set(runs["method"])
assert len(pb.compare(["ucb", "cucb"], experiment="CBO-X1")) > 1
from plumbline.store.provenance import provenance
assert provenance()["commit"] is None
"""
    checked(installed.python, "-c", code, cwd=installed.elsewhere(), env=installed.env)


def test_a_workspace_in_a_path_with_a_space_has_the_quick_preset(installed: Installed, study: Path) -> None:
    snakemake = [installed.python, "-m", "snakemake", "--cores", 2]
    assert "report_page" in checked(*snakemake, "--dry-run", cwd=study, env=installed.env)
    checked(*snakemake, "--", "CAL-F1", cwd=study, env=installed.env)
    assert (study / "results/quick/figures/CAL-F1.png").stat().st_size > 10_000
    checked(*snakemake, "--report", "report.zip", "--", "CAL-F1", cwd=study, env=installed.env)
    assert "report/report.html" in zipfile.ZipFile(study / "report.zip").namelist()
    (chunk, *_) = (study / "results/trials").rglob("*.parquet")
    assert chunk.stat().st_size > 1000


def test_a_study_of_ones_own_is_begun_and_run(installed: Installed, study: Path) -> None:
    assert "snakemake" in installed.plumbline("new", "study", "mine", cwd=study)
    command = [installed.python, "-m", "snakemake", "--cores", 2, "--config", "studies=[mine]", "--", "MINE-1"]
    checked(*command, cwd=study, env=installed.env)
    assert (study / "results/quick/tables/MINE-1.csv").is_file()


def test_conda_asks_for_a_checkout(installed: Installed, study: Path) -> None:
    command = [installed.python, "-m", "snakemake", "--cores", "1", "--dry-run", "--sdm", "conda"]
    done = subprocess.run(command, cwd=study, env=installed.env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "--sdm conda: only a checkout of the repository" in done.stdout + done.stderr
