"""The commands that list and show."""

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import check_one_line

from plumbline.registry.catalogue import catalogue
from plumbline.store.spec import TrialSpec

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(("command", "kind"), [("methods", "method"), ("problems", "problem")])
def test_listings(command: str, kind: str, run: Run) -> None:
    code, output, _ = run(command)
    assert code == 0
    listings = getattr(catalogue(), kind)
    assert {line.split()[0] for line in output.splitlines()} == set(listings)
    for listing in listings.values():
        assert listing.summary in output


@pytest.mark.parametrize(("command", "name", "option"), [("methods", "ei", "jitter"), ("problems", "radio", "n_ch")])
def test_one_with_its_options(command: str, name: str, option: str, run: Run) -> None:
    code, output, _ = run(command, name)
    assert code == 0
    assert output.startswith(f"{name}  ")
    assert any(line.startswith(f"{option} ") for line in output.splitlines())
    check_one_line(run(command, f"{name}x"), f"unknown {command.removesuffix('s')} '{name}x': did you mean '{name}'?")


def test_a_problem_goes_by_what_one_would_type(run: Run) -> None:
    assert run("problems", "ackley-2") == run("problems", "ackley")


def test_the_schemas_are_written(run: Run, root: Path) -> None:
    code, output, _ = run("schema", "-o", "schemas")
    assert code == 0
    assert "schemas/methods.schema.json" in output.splitlines()
    written = {path.name for path in Path("schemas").iterdir()}
    assert written == {path.name for path in (root / "config/schemas").iterdir()}
