"""The page "Text against code" has a row for each departure of each method, and numbers of the reference results."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from plumbline.registry.catalogue import catalogue
from plumbline.study.plan import load_plan
from plumbline.study.settings import read_config

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "methods" / "text-against-code.md").read_text(encoding="utf-8")
NO_EXPERIMENT = "no experiment yet"


def rows() -> Iterator[list[str]]:
    """The cells of each row of the tables whose last column is the experiment."""
    for section in PAGE.split("\n### ")[1:]:
        lines = [line for line in section.splitlines() if line.startswith("| ")]
        if lines and lines[0].endswith("| experiment |"):
            yield from ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:])


ROWS = list(rows())
EACH_ROW = pytest.mark.parametrize("cells", ROWS, ids=lambda cells: cells[0][:40])


def names_in_lists(schema: Any) -> Iterator[str]:
    """Every name that a list may hold by a JSON schema, at any depth."""
    if isinstance(schema, dict):
        items = schema.get("items")
        if isinstance(items, dict):
            yield from items.get("enum", [items["const"]] if "const" in items else [])
        schema = list(schema.values())
    for part in schema if isinstance(schema, list) else ():
        yield from names_in_lists(part)


def departures() -> set[str]:
    """Every departure that a registered method has an option for."""
    variants = [listing.options["properties"].get("variant") for listing in catalogue().method.values()]
    return set(names_in_lists(variants))


def test_every_departure_of_a_method_has_a_row() -> None:
    assert "raw-inputs" in departures()
    assert departures() - {cells[0].strip("`") for cells in ROWS} == set()


@pytest.mark.slow
def test_every_experiment_that_a_row_names_is_configured() -> None:
    plan = load_plan(read_config(ROOT / "config" / "config.yaml", ROOT / "config" / "paper.yaml"), ROOT)
    known = {name for study in plan.studies.values() for name in study.experiments} | {NO_EXPERIMENT}
    assert len(ROWS) > 50
    assert {name for cells in ROWS for name in cells[-1].split(", ")} <= known


@EACH_ROW
def test_every_row_gives_an_effect(cells: list[str]) -> None:
    assert cells[-2]


@EACH_ROW
def test_every_mean_with_an_error_is_on_file(cells: list[str]) -> None:
    """`x ± s` are mean and standard error, rounded, of a method in the table of an experiment that the row names."""
    paths = [ROOT / "results" / "reference" / name / f"{name}-table.csv" for name in cells[-1].split(", ")]
    tables = [pd.read_csv(path) for path in paths if path.is_file()]
    for value, error in re.findall(r"(\d*\.\d+) ± (\d*\.\d+)", cells[-2]):
        digits = len(value.partition(".")[2])
        rounded = [table.select_dtypes("number").abs().round(digits) for table in tables]
        assert any(
            ((table[name] == float(value)) & (table[f"{name} ±"] == float(error))).any()
            for table in rounded
            for name in table
            if f"{name} ±" in table
        ), f"{value} ± {error}"
