"""The checks and forms for GitHub call what there is."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
MAKE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [path for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]
KINDS = {"textarea", "input", "dropdown", "checkboxes", "markdown"}


def read(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def targets() -> set[str]:
    """The targets of the Makefile."""
    heads = re.findall(r"^((?:[a-z][\w-]* ?)+):(?!=)", MAKE, flags=re.MULTILINE)
    return {name for head in heads for name in head.split()}


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


def unknown_commands(script: str) -> list[str]:
    """The lines of a script that are no `make` of a target."""
    lines = [shlex.split(line) for line in script.splitlines() if line.strip()]
    return [" ".join(words) for words in lines if words[0] != "make" or not {*words[1:]} <= targets()]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_run_targets_of_the_makefile(path: Path) -> None:
    scripts = [step["run"] for step in steps(path) if "run" in step]
    assert [line for script in scripts for line in unknown_commands(script)] == []
    assert {"make lint", "make test", "make study"} <= set(scripts)
    for name, job in read(path)["jobs"].items():
        assert job["steps"][0]["uses"].startswith("actions/checkout@"), name
        assert job["timeout-minutes"] <= 90


def test_another_command_would_be_found() -> None:
    assert {"study", "test", "lint", "lock", "clean"} <= targets()
    assert unknown_commands("make lint\nmake tests\nrm -r results") == ["make tests", "rm -r results"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_is_kept_is_what_the_quick_preset_makes(path: Path) -> None:
    kept = [step["with"]["path"].split() for step in steps(path) if "upload-artifact" in step.get("uses", "")]
    assert kept
    rules = "\n".join(rule.read_text(encoding="utf-8") for rule in (ROOT / "workflow").rglob("*.smk"))
    for place in (place for places in kept for place in places):
        *_, folder, name = place.split("/")
        if place == "results/reference":  # what the report links to, from the repository
            continue
        assert folder in ("quick", "results")
        assert f"/{name}" in rules, place


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_python_is_the_one_of_the_locks(path: Path) -> None:
    setups = [step["with"] for step in steps(path) if "setup-python" in step.get("uses", "")]
    assert setups
    for setup in setups:
        assert setup["python-version"] == "3.11"
        assert (ROOT / setup["cache-dependency-path"]).is_file()


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_is_one(path: Path) -> None:
    form = read(path)
    assert form["name"]
    assert form["description"]
    fields = form["body"]
    assert {one["type"] for one in fields} <= KINDS
    names = [one["id"] for one in fields]
    assert len(set(names)) == len(names)
    assert all(one["attributes"]["label"] for one in fields)
    assert any(one.get("validations", {}).get("required") for one in fields)
    for name in re.findall(r"docs/[\w/.-]+\.md", path.read_text(encoding="utf-8")):
        assert (ROOT / name).is_file(), name


def test_there_is_a_form_for_bugs_disputes_and_methods() -> None:
    assert [path.stem for path in FORMS] == ["bug", "claim", "method"]


def test_the_development_container_is_built_and_then_tested() -> None:
    settings = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    assert (ROOT / ".devcontainer" / settings["build"]["dockerfile"]).is_file()
    assert unknown_commands(settings["postCreateCommand"]) == []
