"""Imports run downwards, in the order of folders that docs/design.md has, and in no circle."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "plumbline"
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
LINES = [line.split() for line in PAGE.split("## Order of folders", 1)[1].split("```")[1].strip().splitlines()]
LEVEL = {folder: level for level, line in enumerate(reversed(LINES)) for folder in line}
"""How high each folder stands; the lowest has 0."""


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


@cache
def modules() -> Mapping[str, Path]:
    return {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(path: Path) -> Iterator[str]:
    """Yield the modules of this package that a file imports, at any depth of its code, for types alone or not."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules() else node.module for name in names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@cache
def graph() -> "nx.DiGraph[str]":
    edges = nx.DiGraph()
    for module, path in modules().items():
        edges.add_edges_from((module, name) for name in imported(path) if name in modules() and name != module)
    return edges


def folder_of(module: str) -> str:
    return module.split(".")[1]


def test_the_order_has_every_folder_once() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert sorted(folder for line in LINES for folder in line) == sorted(folders)


def test_at_the_root_there_are_only_folders() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == {"__init__", "__main__"}


@pytest.mark.parametrize("folder", sorted(LEVEL))
def test_imports_run_downwards(folder: str) -> None:
    upward = [
        f"{module} imports {name}"
        for module, name in graph().edges
        if module.startswith(f"plumbline.{folder}.") and folder_of(name) != folder
        if LEVEL[folder_of(name)] >= LEVEL[folder]
    ]
    assert upward == []


def test_no_imports_run_in_a_circle() -> None:
    """A package whose own `__init__` gathers its modules is no circle: nothing imports it from within."""
    circles = [sorted(group) for group in nx.strongly_connected_components(graph()) if len(group) > 1]
    assert circles == []


def test_analysis_reads_records_alone() -> None:
    """Metrics, statistics and analysis run without torch, also where a plan is read."""
    without = {"analysis", "metrics", "statistics", "study", "store", "registry"}
    for module, path in modules().items():
        if module.count(".") and folder_of(module) in without:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            at_import = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
            names = {name for node in at_import for name in _roots(node)}
            assert not names & {"torch", "botorch", "gpytorch"}, module


def _roots(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.ImportFrom):
        return {(node.module or "").split(".")[0]}
    return {alias.name.split(".")[0] for alias in node.names}
