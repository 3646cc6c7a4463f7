"""Files, modules and warnings that the pages of methods and guides name are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "plumbline"
PAGES = sorted([*(ROOT / "docs" / "methods").glob("*.md"), *(ROOT / "docs" / "guide").glob("*.md")])
MADE = {"greedy.py", "epsilon.py", "gramacy.py", "straddle.py", "steps.py"}
"""Files that readers save."""

EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def named(page: Path, pattern: str) -> set[str]:
    """What a page has in backticks that matches a pattern in whole."""
    return set(re.findall(rf"`({pattern})`", page.read_text(encoding="utf-8")))


@EACH_PAGE
def test_every_file_is_there(page: Path) -> None:
    for name in named(page, r"[\w/]+\.py"):
        assert Path(name).name in MADE or (ROOT / name).is_file() or any(PACKAGE.rglob(name)), name


@EACH_PAGE
def test_every_module_is_there(page: Path) -> None:
    for name in named(page, r"plumbline(?:\.\w+)+"):
        path = ROOT / "src" / name.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file(), name


@EACH_PAGE
def test_every_module_of_a_table_is_there(page: Path) -> None:
    for name in named(page, r"(?:acquisition|methods|models)(?:/\w+)+"):
        assert (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file(), name


@EACH_PAGE
def test_every_warning_is_raised_somewhere(page: Path) -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    for name in named(page, r"\w+Warning"):
        assert f"class {name}(" in source, name
