"""The README and the pages are true: their examples run, and their verdicts are those of the reference results."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from plumbline.analysis.reference import MARKS, doubt_table, read_doubts, verdict_grid, verdict_table
from plumbline.cli import app
from plumbline.config import read_config
from plumbline.plan import load_plan

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
CLAIMS = ROOT / "results" / "reference" / "claims.csv"
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)


def code_after(heading: str) -> str:
    """Return the first Python block of a section."""
    section = README.split(f"## {heading}\n", 1)[1]
    match = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert match is not None
    return match[1]


@pytest.fixture
def package_copy(tmp_path):
    """Return (folder of a copy of the package, function that runs its command line)."""
    shutil.copytree(ROOT / "src" / "plumbline", tmp_path / "src" / "plumbline")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*arguments):
        command = [sys.executable, "-m", "plumbline", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return tmp_path / "src" / "plumbline", run


def test_a_method_is_added_as_the_readme_says(package_copy):
    package, run = package_copy
    code = code_after("Add a method")
    assert len([line for line in code.splitlines() if line.strip()]) < 20
    (package / "methods" / "epsilon.py").write_text(code)
    command = re.search(r"^plumbline (trial --problem branin --method epsilon-ei.*)$", README, re.MULTILINE)
    assert command is not None

    done = run(*command[1].split())

    assert done.returncode == 0, done.stderr
    assert "round 5/5" in done.stderr
    assert "epsilon-ei" in run("methods").stdout


def test_a_conformal_acquisition_is_added_as_its_page_says(package_copy):
    package, run = package_copy
    page = (ROOT / "docs" / "conformal.md").read_text(encoding="utf-8")
    (package / "methods" / "cpi.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    quick = [word for name in ("steps=3", "burn_in=1", "raw_samples=8") for word in ("--option", f"search.{name}")]

    done = run("trial", "--problem", "branin", "--method", "cpi", "--rounds", "2", *quick)

    assert done.returncode == 0, done.stderr
    assert "round 2/2" in done.stderr


def test_a_problem_is_added_as_the_readme_says(package_copy):
    package, run = package_copy
    (package / "problems" / "griewank.py").write_text(code_after("Add a problem"))

    done = run("trial", "--problem", "griewank-2", "--method", "random", "--rounds", "2")

    assert done.returncode == 0, done.stderr
    assert "griewank-2 random seed 0: done" in done.stderr


def test_the_grid_is_that_of_the_reference_results():
    plan = load_plan(read_config(ROOT / "config" / "config.yaml"), ROOT)
    assert README.count(verdict_grid(plan.studies.values(), pd.read_csv(CLAIMS), read_doubts(CLAIMS))) == 1


def test_the_key_explains_every_mark():
    for verdict, mark in MARKS.items():
        assert f"{mark} {verdict}" in README


def test_verdicts_and_doubts_are_those_of_the_reference_results():
    assert RESULTS.count(verdict_table(pd.read_csv(CLAIMS))) == 1
    assert RESULTS.count(doubt_table(read_doubts(CLAIMS))) == 1


def test_every_claim_that_is_not_run_is_listed():
    plan = load_plan(read_config(ROOT / "config" / "config.yaml"), ROOT)
    for study in plan.studies.values():
        for name, claim in study.claims.items():
            if claim.experiment is None:
                assert f"| {name} | {claim.statement} | {claim.source} |" in RESULTS


def test_every_command_named_exists():
    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    named = set(re.findall(r"^plumbline (\w+)", README, re.MULTILINE)) - {"preset"}
    assert named <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    for target in targets:
        assert target.startswith("http") or (page.parent / target).exists(), target
