"""A preset's results as an RO-Crate, as rocrate itself reads it."""

import errno
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import check_one_line
from rocrate.rocrate import ROCrate

from plumbline.analysis.publish.crate import PROFILES
from plumbline.core.libraries import installed_version

Run = Callable[..., tuple[int, str, str]]
TYPES = {"File", "SoftwareSourceCode", "ComputationalWorkflow"}


@pytest.fixture
def results(run: Run, collected: Path) -> Path:
    """The results of the tiny study, without its page."""
    for name in ("TINY-T1", "TINY-F1"):
        assert run("outputs", name, "--folder", "results/quick")[0] == 0
    assert run("claims", "results/quick", "-o", "results/quick/claims.csv")[0] == 0
    return collected


@pytest.fixture
def crate(run: Run, results: Path) -> ROCrate:
    assert run("crate", "my crate", "--by", "Ada") == (0, "my crate\n", "")
    return ROCrate(results / "my crate")


def ids(entities: Any) -> set[str]:
    return {one.id for one in (entities if isinstance(entities, list) else [entities])}


@pytest.mark.slow
def test_what_was_run_with_what_and_what_came_out(crate: ROCrate, results: Path) -> None:
    assert crate.mainEntity.id == "workflow/Snakefile"
    assert set(crate.mainEntity.type) == TYPES
    assert ids(crate.root_dataset["conformsTo"]) == set(PROFILES)
    assert crate.license.id == "https://spdx.org/licenses/MIT"
    assert "workflow/rules/trials.smk" in ids(crate.mainEntity["hasPart"])
    (action,) = crate.get_by_type("CreateAction")
    assert action["instrument"] is crate.mainEntity
    assert action["agent"]["name"] == "Ada"
    assert ids(action["object"]) == {"configuration.json", "config/"}
    made = {"results/claims.csv", "results/tables/TINY-T1.csv", "results/figures/TINY-F1.svg"}
    assert ids(action["result"]) == made | {f"results/records/TINY-{name}.parquet" for name in ("T1", "F1")}
    parameters = ids(crate.mainEntity["input"]) | ids(crate.mainEntity["output"])
    for one in (*action["object"], *action["result"]):
        assert one["exampleOfWork"].id in parameters
    software = {one["name"]: one["softwareVersion"] for one in crate.get_by_type("SoftwareApplication")}
    assert software["torch"] == installed_version("torch")
    assert {"python", "plumbline", "numpy"} <= set(software)
    for entity in crate.data_entities:
        assert (results / "my crate" / entity.id).exists(), entity.id
    for name in ("claims.csv", "tables/TINY-T1.csv"):
        assert (results / "my crate/results" / name).read_bytes() == (results / "results/quick" / name).read_bytes()
    settings = json.loads((results / "my crate/configuration.json").read_text())
    assert (settings["preset"], settings["studies"]) == ("quick", ["tiny"])


@pytest.mark.slow
def test_an_archive_is_the_same(run: Run, results: Path) -> None:
    assert run("crate", "a.zip")[0] == 0
    shutil.unpack_archive("a.zip", "unpacked")
    found = ROCrate(results / "unpacked")
    (action,) = found.get_by_type("CreateAction")
    assert "agent" not in action.properties()
    assert (results / "unpacked" / "results/claims.csv").is_file()
    check_one_line(run("crate", "a.zip"), "a.zip is there already: name another file or folder")


def test_without_results(run: Run, tiny: Path) -> None:
    check_one_line(run("crate", "a.zip"), "no results of preset 'quick' in results/quick: run it first")
    assert not (tiny / "a.zip").exists()


@pytest.mark.slow
def test_the_validator_finds_no_fault(crate: ROCrate, results: Path) -> None:
    validator = shutil.which("rocrate-validator")
    if validator is None:
        pytest.skip("no command rocrate-validator: its dependencies are not those of the lock (CONTRIBUTING.md)")
    options = ["--no-interactive", "validate", "-np", "-p", "workflow-run-crate", "--no-paging"]
    crate.write(results / "crate")  # the validator itself, as of 0.13, takes a path with a space for another crate
    done = subprocess.run([validator, *options, "crate"], capture_output=True, text=True, check=False)
    if "URLError" in done.stdout or "OfflineCacheMiss" in done.stdout:
        pytest.skip("rocrate-validator reads contexts from the network, and there is none")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_only_what_was_run_is_said_to_have_been(run: Run, results: Path) -> None:
    for path in (results / "results/quick").rglob("TINY-F1.*"):
        path.unlink()
    assert run("crate", "part")[0] == 0
    found = ROCrate(results / "part")
    (action,) = found.get_by_type("CreateAction")
    assert action["description"] == "Snakemake ran the experiments TINY-T1."
    assert found.description.startswith("Results of 1 experiment on")


@pytest.mark.slow
def test_it_is_written_in_whole_or_not_at_all(run: Run, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_one_line(run("crate", "config/crate"), "config/crate is in the configuration, which is packed")
    before = {path.name for path in results.iterdir()}

    def full(self: ROCrate, base_path: Path) -> None:
        Path(base_path).mkdir()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ROCrate, "write", full)
    assert run("crate", "my crate")[0] != 0
    assert {path.name for path in results.iterdir()} == before
