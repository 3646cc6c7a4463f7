"""The README and the pages are true: their examples run, and their verdicts are those of the reference results."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command

from plumbline.analysis.publish.reference import (
    read_claims,
)
from plumbline.cli.app import app
from plumbline.registry.catalogue import catalogue

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CLAIMS = ROOT / "results" / "reference" / "claims.csv"
DOCS = sorted(path for path in (ROOT / "docs").rglob("*.md") if "templates" not in path.parts)
PAGES = [*(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")), *DOCS]


def blocks_after(heading: str, language: str) -> list[str]:
    """Return the blocks of code of a section."""
    section = README.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def commands_after(heading: str) -> list[list[str]]:
    """Return the commands of a section, in words."""
    return [shlex.split(line) for block in blocks_after(heading, "sh") for line in block.splitlines()]


def short(code: str) -> bool:
    """Return whether an example is one that a reader takes in at once."""
    return len([line for line in code.splitlines() if line.strip()]) < 20


@pytest.fixture(scope="module")
def package_copy(tmp_path_factory):
    """Return (folder of a copy of the repository, function that runs its command line)."""
    folder = tmp_path_factory.mktemp("copy")
    for part in ("src", "config", "workflow", "envs"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "Snakefile", folder)
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "XDG_CACHE_HOME": str(folder / "cache")}
    environment["COLUMNS"] = "200"

    def run(*arguments):
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    return folder, run


EXAMPLES = {
    "Add a method": "methods/greedy.py",
    "Add a wrapper": "methods/epsilon.py",
    "Add a problem": "problems/gramacy.py",
}


@pytest.fixture(scope="module")
def with_examples(package_copy):
    """The copy with all that the README adds."""
    folder, run = package_copy
    for heading, file in EXAMPLES.items():
        (code,) = blocks_after(heading, "python")
        assert short(code)
        (folder / "src/plumbline" / file).write_text(code)
    tasks, methods, study = blocks_after("Add a task and an experiment", "yaml")
    assert all(short(text) for text in (tasks, methods, study))
    for file, text in ("tasks", tasks), ("methods", methods):
        with (folder / f"config/{file}.yaml").open("a") as stream:
            stream.write(text)
    (folder / "config/studies/mine.yaml").write_text(study)
    return folder, run


@pytest.mark.parametrize("heading", EXAMPLES)
def test_what_is_added_runs_as_the_readme_says(with_examples, heading):
    _, run = with_examples
    commands = commands_after(heading)
    assert commands
    for command in commands:
        done = run(*command)
        assert done.returncode == 0, done.stderr
        assert "round 5/5" in done.stderr


def test_a_constraint_is_seen_in_what_a_trial_prints(with_examples):
    _, run = with_examples
    done = run("plumbline", "trial", "--problem", "gramacy", "--method", "random", "--rounds", "2")
    assert done.returncode == 0, done.stderr
    assert "y 3" in done.stdout
    assert "violation" in done.stdout


def test_a_method_that_cannot_use_the_constraints_says_what_can(with_examples):
    _, run = with_examples
    done = run("plumbline", "trial", "--problem", "gramacy", "--method", "greedy", "--rounds", "2")
    assert done.returncode == 2
    assert "constraint-1 (at_least_zero)" in done.stderr
    assert "use cjes, eic, epbo, random, sobol" in done.stderr


def test_the_study_of_the_readme_is_a_plan(with_examples):
    _, run = with_examples
    (command,) = commands_after("Add a task and an experiment")
    assert command[0] == "snakemake"
    done = run(command[0], "--dry-run", "--quiet", "all", *command[1:])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_study_of_the_readme_is_built(with_examples):
    folder, run = with_examples
    (command,) = commands_after("Add a task and an experiment")
    done = run(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    table = pd.read_csv(folder / "results/quick/tables/MINE-1.csv")
    assert len(table) == 4
    assert (folder / "results/quick/figures/MINE-1.png").stat().st_size > 10_000


def test_a_conformal_acquisition_is_added_as_its_page_says(package_copy):
    folder, run = package_copy
    page = (ROOT / "docs" / "conformal.md").read_text(encoding="utf-8")
    (folder / "src/plumbline/methods/cpi.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    quick = [word for name in ("steps=3", "burn_in=1", "raw_samples=8") for word in ("--option", f"search.{name}")]

    done = run("plumbline", "trial", "--problem", "branin", "--method", "cpi", "--rounds", "2", *quick)

    assert done.returncode == 0, done.stderr
    assert "round 2/2" in done.stderr


def conclusions():
    """Return the lines of what came out, each with the claims and the experiments that it names."""
    section = README.split("## What came out\n", 1)[1].split("\n## ", 1)[0]
    lines = re.split(r"^\* ", section.split("\n\n[docs", 1)[0], flags=re.MULTILINE)[1:]
    return [
        (" ".join(line.split()), re.findall(r"\b(?:[KCLAS]\d+|[A-Z]{3,5}-[A-Z]?\d[\w-]*)\b", line)) for line in lines
    ]


def tables_on_file(sources):
    """Return the rows of these claims, and the tables of these experiments."""
    claims = read_claims(CLAIMS)
    paths = [CLAIMS.parent / name / f"{name}-table.csv" for name in sources]
    return [claims[claims["claim"].isin(sources)], *(pd.read_csv(path) for path in paths if path.is_file())]


def numbers_of(tables, columns):
    """Return all numbers of the columns that there are, of all columns where none are named."""
    chosen = [table[[name for name in columns or table if name in table]].select_dtypes("number") for table in tables]
    return np.concatenate([table.to_numpy(dtype=float).ravel() for table in chosen])


@pytest.mark.parametrize(("line", "sources"), conclusions(), ids=lambda one: one[:30] if isinstance(one, str) else "")
def test_every_number_of_a_conclusion_is_on_file(line, sources):
    """Rounded as it is written, in a claim or an experiment that the line names.

    `12 of 50` is a count of runs that are stuck; a percentage is a share of seeds or of draws.
    """
    assert sources, "a conclusion names what it rests on"
    tables = tables_on_file(sources)
    text = re.sub(r"[A-Z]+-?[A-Z]?\d[\w-]*", "", line)
    for count, of in re.findall(r"(\d+) of (\d+)", text):
        stuck = [f" {count} of {of}" in f" {cell}" for cell in tables[0]["stuck"]]
        ended = [table.filter(like="seeds above").eq(int(count)).any(axis=None) for table in tables[1:]]
        assert any(stuck + ended), f"{count} of {of}: {line}"
    for number, percent in re.findall(r"(?<![\w.])(-?\d*\.?\d+)(%?)", re.sub(r"\d+ of \d+", "", text)):
        numbers = numbers_of(tables, ("pattern", "chance", "favourable") if percent else ())
        digits = len(number.partition(".")[2]) + (2 if percent else 0)
        written = float(number) / (100 if percent else 1)
        assert (abs(numbers.round(digits) - written) < 1e-9).any(), f"{number}{percent}: {line}"


def test_the_table_has_every_method_once():
    table = re.findall(r"^\|.*\| (`.*`) \|.*\|$", README.split("## How it is built\n", 1)[1], flags=re.MULTILINE)
    assert sorted(name for names in table for name in re.findall(r"`([\w-]+)`", names)) == sorted(catalogue().method)


def commands_of(page):
    """Return the plumbline commands of a page's blocks of code, in words."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = (line for block in blocks for line in re.split(r"\n|&&", block.replace("\\\n", " ")))
    return [words[1:] for line in lines if (words := shlex.split(line, comments=True))[:1] == ["plumbline"]]


@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page)], ids=lambda page: page.name)
def test_every_command_is_one_with_these_options(page):
    known = get_command(app).commands
    for name, *arguments in commands_of(page):
        known[name].make_context(name, arguments)


def test_a_command_with_another_option_is_none(tmp_path):
    (tmp_path / "page.md").write_text("```sh\nplumbline verdicts --show grid  # not any more\n```\n")
    ((name, *arguments),) = commands_of(tmp_path / "page.md")
    with pytest.raises(Exception, match="'grid' is not one of"):
        get_command(app).commands[name].make_context(name, arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    for target in targets:
        assert target.startswith("http") or (page.parent / target).exists(), target
