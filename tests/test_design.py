"""The map of the house in docs/design.md is true, and imports run downwards."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "plumbline"
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
HOUSE = PAGE.split("## The house", 1)[1].split("```")[1]


def imported(path: Path) -> set[str]:
    """Return the modules of this package that a file imports, at any depth of its code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("plumbline.")}


def test_every_room_is_on_the_map() -> None:
    rooms = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    words = set(re.findall(r"\w+", HOUSE))
    missing = rooms - words - {"__init__", "__main__", "failures", "observers", "provenance", "illustrate"}
    assert not missing


def test_the_map_names_no_room_that_is_not_there() -> None:
    folders = set(re.findall(r"(\w+)/(?=\s)", HOUSE)) - {"config", "workflow", "plumbline"}
    assert folders == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`((?:trials|methods|problems)/\w+)`", PAGE))))
def test_every_file_that_the_way_passes_is_there(named: str) -> None:
    assert (PACKAGE / f"{named}.py").is_file()


FORBIDDEN = {
    "problems": ("methods", "trials", "analysis", "designs", "tracking", "acquisition"),
    "spaces": ("methods", "problems", "trials", "analysis", "models"),
    "models": ("methods", "problems", "trials", "analysis"),
    "calibration": ("methods", "problems", "trials", "analysis", "acquisition"),
    "acquisition": ("methods", "problems", "trials", "analysis"),
    "designs": ("methods", "trials", "analysis"),
    "methods": ("trials", "analysis", "designs", "tracking"),
    "trials": ("analysis", "tracking"),
    "measures": ("methods", "problems", "trials", "models", "acquisition", "spaces", "designs", "analysis", "tracking"),
    "analysis": ("methods", "problems", "trials", "models", "acquisition", "spaces", "designs"),
}


@pytest.mark.parametrize("room", FORBIDDEN)
def test_imports_run_downwards(room: str) -> None:
    for path in (PACKAGE / room).rglob("*.py"):
        above = {name for name in imported(path) if name.split(".")[1] in FORBIDDEN[room]}
        assert not above, f"{path.name}: {sorted(above)}"


def test_methods_know_of_problems_what_a_problem_is_and_no_more() -> None:
    for path in (PACKAGE / "methods").glob("*.py"):
        known = {name for name in imported(path) if name.startswith("plumbline.problems")}
        assert all(name.startswith("plumbline.problems.base") for name in known), path.name
