"""The notebook of the guide runs from top to bottom, in a workspace of its own."""

import re
from pathlib import Path
from typing import Any

import nbformat
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


def test_its_verdicts_are_those_of_the_reference() -> None:
    """It is run again when they change."""
    (cell,) = (cell for cell in cells() if "pb.claims()" in cell.source)
    printed = re.findall(r"^(.*\S) +(\d+)$", cell.outputs[0]["data"]["text/plain"], flags=re.MULTILINE)
    expected = pb.claims()["verdict"].value_counts()
    assert {verdict: int(count) for verdict, count in printed} == expected.to_dict()


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
    assert len(list((tmp_path / "study/results/store").glob("*/records.parquet"))) == 6
