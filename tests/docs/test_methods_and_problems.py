"""The pages of methods and problems: which wrapper goes around which method, every problem, and what its optimum is."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.methods.base import methods
from plumbline.problems.base import Context
from plumbline.problems.build import build_problem
from plumbline.registry.catalogue import catalogue

DOCS = Path(__file__).parents[2] / "docs"
COMBINE = (DOCS / "methods" / "index.md").read_text(encoding="utf-8").split("## How they combine\n", 1)[1]
PROBLEMS = (DOCS / "guide" / "problems.md").read_text(encoding="utf-8")


def table(text: str) -> list[list[str]]:
    """The cells of all rows of tables, their heads included."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def names(cell: str) -> list[str]:
    return re.findall(r"`([\w-]+)`", cell)


(_, *WRAPPERS), *ROWS = table(COMBINE)
INSIDE: dict[str, Any] = {name: {"members": ["ei", "ucb"]} for name in ("hedge", "roulette", "relay")} | {
    name: {"base": "ei"} for cell in WRAPPERS for name in names(cell)
}
INSIDE["audited-search"]["audit"] = "ei"
"""The options of methods that need others."""


def goes_around(wrapper: str, base: str) -> bool:
    """Whether a wrapper takes a base."""
    try:
        inside = {"name": base, "options": INSIDE.get(base, {})}
        parse(methods[wrapper].options, INSIDE.get(wrapper, {}) | {"base": inside}, wrapper)
    except PlumblineError:
        return False
    return True


def test_the_table_of_combinations_has_every_method_once() -> None:
    assert sorted(name for cells in ROWS for name in names(cells[0])) == sorted(catalogue().method)


@pytest.mark.parametrize("cells", ROWS, ids=lambda cells: cells[0][:30])
def test_wrappers_go_around_the_methods_of_a_row_as_it_says(cells: list[str]) -> None:
    for heading, mark in zip(WRAPPERS, cells[1:], strict=True):
        for wrapper in names(heading):
            assert {goes_around(wrapper, base) for base in names(cells[0])} == {mark == "✓"}, wrapper


def test_every_problem_has_a_row() -> None:
    listed = [re.sub(r"-\d+$", "", name) for cells in table(PROBLEMS) for name in names(cells[0])]
    assert set(listed) == set(catalogue().problem)


KNOWN = [
    (name, cells[3].split(", ")[place], cells[1].split(", ")[place])
    for cells in table(PROBLEMS)
    for place, name in enumerate(names(cells[0]))
    if re.match(r"-?[\d.]", cells[3])
]


@pytest.mark.parametrize(("name", "optimum", "inputs"), KNOWN)
def test_the_optimum_is_that_of_the_problem(name: str, optimum: str, inputs: str, tmp_path: Path) -> None:
    dim = int(found[1]) if (found := re.search(r"-(\d+)$", name)) else None
    bare = name.removesuffix(f"-{dim}")
    problem = build_problem(bare, {"dim": dim} if dim else {}, Context(tmp_path, torch.Generator().manual_seed(0)))
    value, _, per_input = optimum.partition(" ")
    assert problem.optimum == pytest.approx(float(value) * (dim if dim and per_input else 1), abs=1e-4)
    assert not inputs.isdigit() or problem.bounds.shape[-1] == int(inputs)
