"""The notebook of the guide runs from top to bottom, in a workspace of its own."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest

import plumbline as pb
from plumbline.cli.skeletons import write_workspace

NOTEBOOK = Path(__file__).parents[2] / "docs" / "guide" / "notebook.ipynb"


def cells() -> list[Any]:
    """The cells of code."""
    return [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]


def kinds(cell: Any) -> list[str]:
    """What a cell puts out, apart from what it prints."""
    return sorted({kind for one in cell.outputs for kind in one.get("data", ())})


def texts(cell: Any) -> list[str]:
    """What a cell puts out, as text; without what a figure is called."""
    return [
        one.get("text") or one["data"]["text/plain"] for one in cell.outputs if "image/png" not in one.get("data", {})
    ]


def of_reference_results() -> list[Any]:
    """The cells whose outputs rest on the reference results alone."""
    return [cell for cell in cells() if re.search(r"pb\.(compare|seeds|claims)\(", cell.source)]


def complains(output: Any) -> bool:
    """Whether an output is an error or a warning."""
    return output.output_type == "error" or output.get("name") == "stderr"


def test_it_is_kept_with_its_outputs() -> None:
    found = cells()
    assert [cell.execution_count for cell in found] == list(range(1, len(found) + 1))
    assert all(cell.outputs for cell in found)
    assert not [
        one for cell in found for one in cell.outputs if one.output_type == "error" or one.get("name") == "stderr"
    ]
    assert sum("image/png" in kinds(cell) for cell in found) == 1
    assert NOTEBOOK.stat().st_size < 200_000


@pytest.mark.parametrize("cell", of_reference_results(), ids=lambda cell: cell.source.splitlines()[-1][:30])
def test_its_outputs_are_those_of_the_reference_results(cell: Any) -> None:
    """It is run again when they change."""
    *before, last = cell.source.splitlines()
    names = {"pb": pb}
    exec("\n".join(before), names)
    with pd.option_context("display.width", 80, "display.max_columns", 20):  # as in a notebook
        assert [str(eval(last, names))] == texts(cell)


def test_there_are_such_outputs() -> None:
    assert len(of_reference_results()) == 3


@pytest.mark.slow
def test_it_runs(tmp_path: Path, one_core: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    from nbclient import NotebookClient

    for name, value in one_core.items():
        monkeypatch.setenv(name, value)
    write_workspace(tmp_path / "study")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path / "study")}}).execute()
    again = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [kinds(cell) for cell in again] == [kinds(cell) for cell in cells()]
    assert not [one for cell in again for one in cell.outputs if complains(one)]
    # What methods do on another processor differs in the last digits, and then in all.
    assert [texts(cell) for cell in again if "pb.run(" not in cell.source] == [
        texts(cell) for cell in cells() if "pb.run(" not in cell.source
    ]
    assert len(list((tmp_path / "study/results/store").glob("*/records.parquet"))) == 6
