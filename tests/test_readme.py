"""The README and the pages are true: their examples run, and their numbers are those of the reference results."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
import typer
from typer.main import get_command

import plumbline as pb
from plumbline.analysis.atlas.interventions import LEVEL
from plumbline.analysis.publish.answer import PANELS, comparisons, finding
from plumbline.analysis.publish.atlas_numbers import AtlasNumbers
from plumbline.analysis.publish.estimates import rounded
from plumbline.analysis.publish.reference_verdicts import read_claims
from plumbline.analysis.publish.result_pages import ReferenceNumbers, result_pages
from plumbline.cli.main import app
from plumbline.registry.catalogue import catalogue
from plumbline.study.methods_and_tasks import load_methods_and_tasks
from plumbline.study.plan import load_plan
from plumbline.study.settings import read_config
from plumbline.study.verdicts import LOOKS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CLAIMS = ROOT / "results" / "reference" / "claims.csv"
EXTENDING = (ROOT / "docs" / "guide" / "extending.md").read_text(encoding="utf-8")
METHODS = (ROOT / "docs" / "methods" / "index.md").read_text(encoding="utf-8")
CONFORMAL = (ROOT / "docs" / "methods" / "conformal.md").read_text(encoding="utf-8")
DOCS = sorted(path for path in (ROOT / "docs").rglob("*.md") if "templates" not in path.parts)
PAGES = [*(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")), *DOCS]


def blocks(page: str, language: str) -> list[str]:
    """The blocks of code of a page, or of a section of it."""
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def section(page: str, heading: str) -> str:
    """The section of a page under a heading."""
    return page.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


def commands(text: str) -> list[list[str]]:
    """The commands of a section, in words."""
    lines = (line for block in blocks(text, "sh") for line in block.splitlines())
    return [shlex.split(line, comments=True) for line in lines]


SAVED = re.compile(r"[Ss]ave (?:it|this one) as\s+`([\w/.]+)`[^:`]*:\n\n```python\n(.*?)```", re.DOTALL)
"""A file that a page has its readers save, and its content."""


def short(code: str) -> bool:
    """Return whether an example is one that a reader takes in at once."""
    return len([line for line in code.splitlines() if line.strip()]) < 20


@pytest.fixture(scope="module")
def package_copy(tmp_path_factory):
    """Return (folder of a copy of the repository, with all that its pages add; function that runs Python there)."""
    folder = tmp_path_factory.mktemp("copy")
    for part in ("src", "config", "workflow", "envs"):
        shutil.copytree(
            ROOT / part, folder / part, ignore=shutil.ignore_patterns("*.egg-info")
        )  # what is compiled, too
    shutil.copy(ROOT / "Snakefile", folder)
    (folder / "results").mkdir()
    (folder / "results" / "reference").symlink_to(ROOT / "results" / "reference")
    add_examples(folder)
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "XDG_CACHE_HOME": str(folder / "cache")}
    environment["COLUMNS"] = "200"

    def run(*arguments, **streams):
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, **streams
        )

    return folder, run


def add_examples(folder):
    """Save and append what the README and the guide have their readers add."""
    saved = SAVED.findall(README) + SAVED.findall(EXTENDING)
    assert len(saved) == len(blocks(section(README, "Add a method"), "python") + blocks(EXTENDING, "python"))
    for file, code in saved:
        assert short(code)
        (folder / file).write_text(code)
    (acquisition,) = blocks(CONFORMAL, "python")
    (folder / "src/plumbline/methods/conformal/cpi.py").write_text(acquisition)
    (code,) = blocks(section(README, "One trial"), "python")
    assert len(code.splitlines()) <= 10
    (folder / "readme.py").write_text(code)
    tasks, methods, study = blocks(section(EXTENDING, "Add a task and an experiment"), "yaml")
    assert all(short(text) for text in (tasks, methods, study))
    for text in tasks, methods:
        with (folder / text.splitlines()[0].removeprefix("# ")).open("a") as stream:
            stream.write(text)
    (folder / "config/studies/mine.yaml").write_text(study)


QUICK = [word for name in ("steps=3", "burn_in=1", "raw_samples=8") for word in ("--option", f"search.{name}")]
ADDED = [command for page in (README, EXTENDING) for command in commands(page) if "--rounds" in command]
SHOWN = [command for command in commands(EXTENDING) if command[:2] == ["plumbline", "classes"]]
CONSTRAINED = ["plumbline", "trial", "--problem", "gramacy", "--class", "random", "--rounds", "2"]
UNCONSTRAINED = ["plumbline", "trial", "--problem", "gramacy", "--class", "greedy", "--rounds", "2"]
CPI = ["plumbline", "trial", "--problem", "branin", "--class", "cpi", "--rounds", "2", *QUICK]

IN_TURN = """
import json, runpy, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

answers = []
with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:  # once: some keep the stream they find
    for command in json.load(sys.stdin):
        sys.argv, code = list(command), 0
        try:
            runpy.run_module(command[0], run_name="__main__")
        except SystemExit as stop:
            code = stop.code or 0
        answers.append((code, out.getvalue(), err.getvalue()))
        for stream in (out, err):
            stream.seek(0)
            stream.truncate()
json.dump(answers, sys.stdout)
"""
"""Runs modules in one process, which imports torch once: exit code, output and errors of each."""


@pytest.fixture(scope="module")
def done(package_copy):
    """Return what runs of the examples came to, by their words."""
    _, run = package_copy
    asked = [*ADDED, *SHOWN, CONSTRAINED, UNCONSTRAINED, CPI, ["readme"], dry_run()]
    answer = run("-c", IN_TURN, input=json.dumps(asked))
    assert answer.returncode == 0, answer.stderr
    return {tuple(words): Done(*found) for words, found in zip(asked, json.loads(answer.stdout), strict=True)}


class Done(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    stdout: str
    stderr: str


@pytest.mark.slow
@pytest.mark.parametrize("command", ADDED, ids=lambda command: " ".join(command[1:6]))
def test_what_is_added_runs_as_the_pages_say(done, command):
    code, _, errors = done[tuple(command)]
    assert code == 0, errors
    assert "round 5/5" in errors


@pytest.mark.slow
def test_a_method_that_is_added_is_listed_with_its_options(done):
    (command,) = (words for words in SHOWN if words[-1] == "greedy")
    code, output, errors = done[tuple(command)]
    assert code == 0, errors
    assert "model.kernel" in output


@pytest.mark.slow
def test_the_python_of_the_readme_runs(done):
    code, output, errors = done[("readme",)]
    assert code == 0, errors
    assert "cucb" in output


@pytest.mark.slow
def test_a_constraint_is_seen_in_what_a_trial_prints(done):
    code, output, errors = done[tuple(CONSTRAINED)]
    assert code == 0, errors
    assert "y3" in output
    assert "violation" in output


@pytest.mark.slow
def test_a_method_that_cannot_use_the_constraints_says_what_can(done):
    code, _, errors = done[tuple(UNCONSTRAINED)]
    assert code == 2
    assert "constraint-1 (at_least_zero)" in errors
    assert "use cjes, eic, epbo, random, sobol" in errors


@pytest.mark.slow
def test_a_conformal_acquisition_is_added_as_its_page_says(done):
    code, _, errors = done[tuple(CPI)]
    assert code == 0, errors
    assert "round 2/2" in errors


def study_commands():
    """The commands that build a study of one's own, and compare two of its methods."""
    build, compare = commands(section(EXTENDING, "Add a task and an experiment"))
    return build, compare


def dry_run():
    """The dry run of the command that builds the study."""
    build, _ = study_commands()
    assert build[0] == "snakemake"
    return [build[0], "--dry-run", "--quiet", "all", *build[1:]]


@pytest.mark.slow
def test_the_study_of_the_guide_is_a_plan(done):
    code, output, errors = done[tuple(dry_run())]
    assert code == 0, output + errors


@pytest.mark.slow
def test_the_study_of_the_guide_is_built_and_its_methods_are_compared(package_copy):
    folder, run = package_copy
    for command in study_commands():
        answer = run("-m", *command)
        assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "regret" in answer.stdout
    table = pd.read_csv(folder / "results/quick/tables/MINE-1.csv")
    assert len(table) == 4
    assert (folder / "results/quick/figures/MINE-1.png").stat().st_size > 10_000


def test_the_readme_is_short():
    lines = README.splitlines()
    assert len(lines) <= 150
    assert len(README.split()) <= 1500
    assert max(map(len, lines)) <= 120


def test_the_readme_names_no_experiment_before_it_says_what_such_names_mean():
    codes = [name for line in README.split("## One trial")[0].splitlines() for name in CODE.findall(line)]
    assert codes == []


VERDICTS = {
    "reproduced": "◆ reproduced",
    "partly": "◐ partly",
    "mixed": "◧ mixed",
    "not reproduced": "■ not reproduced",
    "smaller than published": "▼ ● smaller",
    "too small to matter": "▼ ● smaller",
    "inconclusive at this scale": "○ inconclusive",
    "cannot fail": "△ □ not decidable",
    "does not apply": "△ □ not decidable",
}
"""The column of a verdict in the README's table."""


def test_the_table_of_verdicts_counts_those_of_the_reference_results():
    plan = load_plan(read_config(ROOT / "config" / "config.yaml"), ROOT)
    verdicts = read_claims(CLAIMS).drop_duplicates("claim").set_index("claim")["verdict"].map(VERDICTS)
    head, _, *rows = [line for line in README.splitlines() if line.startswith("|")]
    columns = [cell.strip() for cell in head.strip("|").split("|")][1:]
    assert all(LOOKS[verdict].shape in column for verdict, column in VERDICTS.items())
    assert columns == list(dict.fromkeys(VERDICTS.values()))
    counts = [[int(cell) for cell in row.strip("|").split("|")[1:]] for row in rows]
    for study, found in zip(("calibrated", "conformal", "localised", "approximation", "practice"), counts, strict=True):
        claims = list(plan.studies[study].claims)
        assert set(claims) <= set(verdicts.index), "a claim without a run has a column of its own"
        assert found == [int((verdicts[claims] == name).sum()) for name in columns]
    assert f"their {len(verdicts)} claims" in README
    assert sum(map(sum, counts)) == len(verdicts)


def test_the_answer_counts_the_comparisons_of_the_figure():
    words = " ".join(README.split())
    found = comparisons(read_claims(CLAIMS), load_methods_and_tasks(ROOT / "config").same_methods)
    found["words"] = [finding(low, high).words for low, high in zip(found["low"], found["high"], strict=True)]
    said = {panel: some["words"].value_counts() for panel, some in found.groupby("panel", sort=False)}
    calibration, search = said.values()
    assert (
        f"in {calibration['better']} of {calibration.sum()} comparisons, and worse in {calibration['worse']}" in words
    )
    assert f"better values in {search['better']} of {search.sum()} and worse ones in {search['worse']}" in words
    assert f"in {search['undecided']} we find no significant difference" in words
    assert f"over {found['seeds'].min()} to {found['seeds'].max()} seeds" in words
    recalibration = found[(found["paper"] == "calibrated") & (found["panel"] == list(PANELS)[1])][
        "words"
    ].value_counts()
    assert (recalibration["better"], recalibration.sum(), recalibration["worse"]) == (1, 10, 3)
    same = (found["paper"] == "calibrated") & (found["low"] == 0) & (found["high"] == 0)
    assert same.sum() == 3, "of the grid that every method solves"
    nine = "In nine other comparisons, three of them on a grid that every method solves, it never finds significantly"
    assert f"{nine} better values, and in three it finds worse ones" in words


@pytest.mark.slow
def test_the_answer_of_the_atlas_is_that_on_file():
    words = " ".join(README.split())
    atlas = AtlasNumbers(ROOT / "results" / "atlas", {})
    for name in ("conformal", "twice the weight of the standard deviation"):
        one = atlas.atlas_finding(name)
        assert f"{rounded(one.value, 3)} ({rounded(one.low, 3)} to {rounded(one.high, 3)}" in words
    assert f"p = {rounded(atlas.atlas_p('conformal'), 3)} after correction" in words
    found = pb.atlas("findings")
    primary = found[(found["of"] == "score") & found["p_corrected"].notna()]
    assert (primary["tasks"] == primary["tasks"].max()).all()
    assert f"on {primary['tasks'].max()} of its {len(pb.atlas('tasks'))} tasks" in words
    assert not ((primary["value"] < 0) & (primary["p_corrected"] <= LEVEL)).any(), "no idea lowers it significantly"
    error = found[found["of"] == "calibration_error"].set_index("analysis")["value"]
    assert error.idxmin() == "conformal", "conformal sets improve the calibration most"


ANSWERS = {
    "Recalibration": """{{ above("CAL-F2-trap", "ucb-ml", 1) }} of 50,
        {{ above("CAL-F2-trap", "calibrated-ucb", 1) }} of 50""",
    "Conformal sets": """{{ test("C5", "plain UCB's:", "levy")|f(2) }},
        {{ test("C5", "UCB's, published", "levy")|f(2) }},
        {{ test("C5", "plain UCB's:", "ackley")|f(1) }}, {{ test("C5", "UCB's, published", "ackley")|f(1) }},
        {{ test("C5", "UCB's, one search", "levy")|f(2) }}, {{ test("C5", "UCB's, one search", "ackley")|f(2) }},
        {{ mean("CBO-X5", "cucb-polished", "ackley-20-batches", "query_coverage")|f(2) }},
        {{ mean("CBO-X5", "ucb-few", "ackley-20-batches", "query_coverage")|f(2) }}, .87""",
    "Localised": '{{ mean("LOCBO-F5a-410", "bo")|f(2) }}, {{ mean("LOCBO-F5a-410", "ocbo")|f(2) }}',
    "Approximation-aware BO": '{{ test("A1", "eulbo-ei - elbo-ei on hartmann-6")|est(2) }}',
}
"""The numbers of each answer in their order, as a template."""

NUMBER = re.compile(r"(?<![\w.])-?\d*\.\d+|\d+ of \d+|\d+%")
"""A decimal, a count of runs or a percentage."""

CODE = re.compile(r"\b(?:[KCLAS]\d+|[A-Z]{3,5}-[A-Z]?\d[\w-]*)\b")


def answers() -> dict[str, str]:
    """The points of the answer by their first words."""
    found = re.findall(r"^\* (.*?)(?=^\* |^\S|^$|\Z)", section(README, "The answer"), re.MULTILINE | re.DOTALL)
    return {re.match(r"\*\*(.*?)\*\*", point)[1]: " ".join(point.split()) for point in found}


def test_the_numbers_of_the_answers_are_those_of_the_reference(tmp_path):
    for name, numbers in ANSWERS.items():
        (tmp_path / f"{name}.md").write_text(numbers, encoding="utf-8")
    filled_in = result_pages(tmp_path, ReferenceNumbers(CLAIMS.parent, []))
    for name, answer in answers().items():
        (expected,) = (page for path, page in filled_in.items() if name.startswith(path.removesuffix(".md")))
        assert NUMBER.findall(answer) == NUMBER.findall(expected.partition("-->")[2]), name


def test_the_table_of_methods_has_every_method_once():
    names = re.findall(r"^\|[^|]*\| (`.*?`) \|", section(METHODS, "All methods"), flags=re.MULTILINE)
    assert sorted(name for some in names for name in re.findall(r"`([\w-]+)`", some)) == sorted(catalogue().method)


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


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_every_command_in_a_sentence_is_one(page):
    """The changes name commands of former versions too."""
    named = re.findall(r"`plumbline\s+([a-z][\w-]*)", page.read_text(encoding="utf-8"))
    assert set(named) <= set(get_command(app).commands)


def test_a_command_with_another_option_is_none(tmp_path):
    (tmp_path / "page.md").write_text("```sh\nplumbline verdicts --show grid  # not any more\n```\n")
    ((name, *arguments),) = commands_of(tmp_path / "page.md")
    with pytest.raises(typer.BadParameter, match="'grid' is not one of"):
        get_command(app).commands[name].make_context(name, arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    for target in targets:
        assert target.startswith("http") or (page.parent / target).exists(), target
