"""The commands that list and show."""

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import check_one_line

from plumbline.registry.catalogue import catalogue
from plumbline.store.spec import TrialSpec

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("kind", ["method", "problem", "figure"])
def test_classes_of_a_kind(kind: str, run: Run) -> None:
    code, output, _ = run("classes", kind)
    assert code == 0
    listings = getattr(catalogue(), kind)
    assert {line.split()[0] for line in output.splitlines()} == {"name", *listings}
    for listing in listings.values():
        assert listing.summary in output


@pytest.mark.parametrize("kind", ["problem", "figure", "table", "metric", "statistic"])
def test_a_kind_has_a_command_of_its_own(kind: str, run: Run) -> None:
    assert run(f"{kind}s") == run("classes", kind)
    first = run("classes", kind, "--csv")[1].splitlines()[1].split(",")[1]
    assert run(f"{kind}s", first) == run("classes", kind, first)


def test_all_classes_by_kind(run: Run) -> None:
    code, output, _ = run("classes")
    assert code == 0
    assert {"method", "design", "metric", "statistic"} <= set(output.splitlines())
    check_one_line(run("classes", "methods"), "unknown kind of class 'methods': did you mean 'method'?")


@pytest.mark.parametrize(("kind", "name", "option"), [("method", "ei", "jitter"), ("problem", "radio", "n_ch")])
def test_one_with_its_options(kind: str, name: str, option: str, run: Run) -> None:
    code, output, _ = run("classes", kind, name)
    assert code == 0
    assert output.startswith(f"{name}  ")
    assert any(line.startswith(f"{option} ") for line in output.splitlines())
    check_one_line(run("classes", kind, f"{name}x"), f"unknown {kind} '{name}x': did you mean '{name}'")
    assert "no options" in run("classes", "method", "random")[1]


def test_a_problem_goes_by_what_one_would_type(run: Run) -> None:
    assert run("classes", "problem", "ackley-2") == run("classes", "problem", "ackley")


def test_entries_by_paper(run: Run, tiny: Path) -> None:
    code, output, _ = run("methods")
    assert code == 0
    assert output.splitlines()[:3] == ["tiny", "method  legend  class", "dice    dice    random"]
    assert "bound" not in run("methods", "dic")[1]
    assert run("tasks", "--csv")[1].splitlines()[0] == "task,paper,title,problem,initial,rounds,q,entry"
    assert "TINY-T1" in run("experiments", "tiny")[1]
    check_one_line(run("tasks", "ackley"), "no task with 'ackley' in its name, and no such paper; papers: tiny")


@pytest.mark.parametrize("there", [False, True])
def test_methods_without_their_library_are_marked(
    there: bool, run: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr(
        "plumbline.core.libraries.installed_version", lambda one: "1" if there or one != "cmaes" else None
    )
    lines = {line.split()[0]: line for line in run("methods", "peers")[1].splitlines()}
    assert ("not installed" in lines["cma-es"]) is not there
    assert "not installed" not in lines["ax"]
    rows = dict(line.split(",")[::5] for line in run("methods", "cma-es", "--csv")[1].splitlines())
    assert rows == {"method": "installed", "cma-es": str(there)}


def test_show(run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for kind, name in (("method", "bound"), ("task", "branin"), ("experiment", "TINY-T1")):
        code, output, _ = run("show", kind, name)
        assert code == 0
        assert output.startswith(f"# {kind} {name}")
        assert max(map(len, output.splitlines())) <= 80
    assert "kernel: matern52" in run("show", "method", "bound")[1]
    check_one_line(run("show", "method", "dise"), "unknown method 'dise': did you mean 'dice'?")
    check_one_line(run("show", "figure", "dise"), "unknown kind of entry 'figure'")


@pytest.mark.parametrize("command", [("methods",), ("tasks",), ("experiments",), ("classes", "metric"), ("verdicts",)])
def test_listings_are_readable_at_80_columns(
    command: tuple[str, ...], run: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLUMNS", "80")
    code, output, _ = run(*command)
    assert code == 0
    assert max(map(len, output.splitlines())) <= 80


def test_the_schemas_are_written(run: Run, root: Path) -> None:
    code, output, _ = run("schema", "-o", "schemas")
    assert code == 0
    assert "schemas/methods.schema.json" in output.splitlines()
    written = {path.name for path in Path("schemas").iterdir()}
    assert written == {path.name for path in (root / "config/schemas").iterdir()}
