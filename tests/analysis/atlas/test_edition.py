"""An edition's files: cells are added, replaced by more seeds, and never by fewer."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plumbline.analysis.atlas.edition import (
    CELLS,
    Cell,
    add_cells,
    check_edition,
    read_cells,
    read_rounds,
    read_tasks,
)
from plumbline.analysis.atlas.rounds import COLUMNS, LEVELS
from plumbline.core.errors import PlumblineError

TASKS = pd.DataFrame(
    {"task": ["bowl", "valley"], "track": "x", "title": ["A bowl", "A valley"], "initial": 2, "rounds": 2}
)


def rounds(seeds: int, best: float = 1.0, start: float = 0.0) -> pd.DataFrame:
    frame = pd.DataFrame({"seed": np.repeat(range(seeds), 3), "round": [0, 1, 2] * seeds})
    frame = frame.reindex(columns=list(COLUMNS))
    frame["best"] = (best + frame["round"] / 3).where(frame["round"] > 0, start)
    frame.loc[frame["round"] > 0, list(LEVELS)] = 1.0
    return frame


def cell(task: str, method: str, seeds: int, best: float = 1.0) -> Cell:
    about = {"task": task, "method": method, "class": "ei", "seeds": seeds, "failed": 0, "empty": "" if seeds else "no"}
    facts = {"measure": "value", "inputs": 2} if seeds else {}
    return Cell(about, rounds(seeds, best) if seeds else None, facts)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    new = [cell("bowl", "b", 2, 0.1), cell("bowl", "a", 1), cell("valley", "a", 0)]
    assert add_cells(tmp_path, new, TASKS, {"licence": "MIT"}) == 3
    check_edition(tmp_path)
    about = json.loads((tmp_path / "edition.json").read_text())
    assert about == {"edition": "2026.12", "licence": "MIT", "made_with": []}
    cells = read_cells(tmp_path)
    assert list(cells) == CELLS
    assert cells[["task", "method", "seeds"]].to_numpy().tolist() == [
        ["bowl", "a", 1],
        ["bowl", "b", 2],
        ["valley", "a", 0],
    ]
    assert read_tasks(tmp_path)["inputs"].tolist() == [2.0, pytest.approx(np.nan, nan_ok=True)]
    found = read_rounds(tmp_path, ["bowl"])
    assert list(found) == ["task", "method", *COLUMNS]
    of_b = found[found["method"] == "b"]
    np.testing.assert_array_equal(of_b["best"], rounds(2, 0.1)["best"])  # to the last bit
    np.testing.assert_array_equal(of_b["covered_80"], rounds(2)["covered_80"])
    assert read_rounds(tmp_path, []).empty


def test_a_table_filtered_with_pandas_is_read_beside_the_others(tmp_path: Path) -> None:
    add_cells(tmp_path, [cell(task, method, 2) for task in ("bowl", "valley") for method in "ab"], TASKS, {})
    path = tmp_path / "bowl.parquet"
    table = pd.read_parquet(path).astype({"method": str, "seed": int, "round": int, "pit": float})
    table[table["method"] == "b"].to_parquet(path)  # with the index of the rows
    found = read_rounds(tmp_path, ["bowl", "valley"])
    assert list(found) == ["task", "method", *COLUMNS]
    pairs = found[["task", "method"]].astype(str).drop_duplicates().to_numpy().tolist()
    assert pairs == [["bowl", "b"], ["valley", "a"], ["valley", "b"]]
    of_bowl, of_valley = (found[(found["task"] == task) & (found["method"] == "b")] for task in ("bowl", "valley"))
    pd.testing.assert_frame_equal(of_bowl[list(COLUMNS)], of_valley[list(COLUMNS)].set_axis(of_bowl.index))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop(columns="best"), "has no column 'best'"),
        (lambda table: table.assign(seed="first"), "is not a table of an atlas"),
        (lambda table: table.assign(round=70_000), "is not a table of an atlas"),
    ],
)
def test_another_table_under_a_tasks_name_is_refused(
    tmp_path: Path, change: Callable[[pd.DataFrame], pd.DataFrame], message: str
) -> None:
    add_cells(tmp_path, [cell("bowl", "a", 1)], TASKS, {})
    path = tmp_path / "bowl.parquet"
    change(pd.read_parquet(path)).to_parquet(path)
    with pytest.raises(PlumblineError, match=rf"bowl\.parquet {message}"):
        read_rounds(tmp_path, ["bowl"])


def test_it_says_what_its_cells_were_made_with(tmp_path: Path) -> None:
    for name, version in (("a", "2.1"), ("b", "2.0")):
        made = cell("bowl", name, 1)._replace(made_with=frozenset({"numpy 2", f"torch {version}"}))
        add_cells(tmp_path, [made], TASKS, {})
    about = json.loads((tmp_path / "edition.json").read_text())
    assert about["made_with"] == ["numpy 2", "torch 2.0", "torch 2.1"]


def test_the_edition_on_file_can_be_deposited() -> None:
    folder = Path("results/atlas")
    deposit = json.loads((folder / ".zenodo.json").read_text())
    about = json.loads((folder / "edition.json").read_text())
    assert (deposit["version"], deposit["title"]) == (about["edition"], about["title"])
    assert deposit["license"] == about["licence"].lower()
    assert (folder / "LICENSE").read_text() == Path("LICENSE").read_text()


def test_more_seeds_replace_fewer_and_not_the_reverse(tmp_path: Path) -> None:
    add_cells(tmp_path, [cell("bowl", "a", 2, 1.0), cell("bowl", "b", 2, 1.0)], TASKS, {})
    assert add_cells(tmp_path, [cell("bowl", "a", 1, 9.0), cell("bowl", "b", 3, 9.0)], TASKS, {}) == 1
    first = read_rounds(tmp_path, ["bowl"]).query("round == 1").groupby("method", observed=True)["best"].first()
    assert (first - 1 / 3).round(9).to_dict() == {"a": 1.0, "b": 9.0}
    assert read_cells(tmp_path)["seeds"].tolist() == [2, 3]


def test_trials_with_other_initial_designs_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    add_cells(tmp_path, [cell("bowl", "a", 2), cell("valley", "a", 2)], TASKS, {})
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = cell("valley", "b", 3)._replace(rounds=rounds(3, start=0.25))
    with pytest.raises(PlumblineError, match=r"valley: .* seed 0's initial design is 0 under a and 0\.25 under b"):
        add_cells(tmp_path, [cell("bowl", "b", 2), other], TASKS, {})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_all_cells_of_a_task_may_be_replaced_by_others(tmp_path: Path) -> None:
    add_cells(tmp_path, [cell("bowl", "a", 2)], TASKS, {})
    assert add_cells(tmp_path, [cell("bowl", "a", 2)._replace(rounds=rounds(2, start=0.25))], TASKS, {}) == 1


def test_a_cell_that_was_empty_is_filled(tmp_path: Path) -> None:
    add_cells(tmp_path, [cell("bowl", "a", 0)], TASKS, {})
    assert add_cells(tmp_path, [cell("bowl", "a", 1)], TASKS, {}) == 1
    assert len(read_rounds(tmp_path, ["bowl"])) == 3
    assert add_cells(tmp_path, [cell("bowl", "a", 0)], TASKS, {}) == 0


def test_sets_that_hold_observations_in_part_are_refused(tmp_path: Path) -> None:
    partial = rounds(1).assign(covered_80=[np.nan, 1.0, 0.5])
    with pytest.raises(PlumblineError, match="sets of b hold observations in part"):
        add_cells(tmp_path, [cell("bowl", "a", 1), cell("bowl", "b", 1)._replace(rounds=partial)], TASKS, {})


def test_two_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    names = [f"m{i}" for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: add_cells(tmp_path / "atlas", [cell("bowl", name, 1)], TASKS, {}), names))
    assert read_cells(tmp_path / "atlas")["method"].tolist() == names
    assert sorted(read_rounds(tmp_path / "atlas", ["bowl"])["method"].unique()) == names


@pytest.mark.parametrize("name", [".", "../atlas", "../link"])
def test_a_folder_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "atlas").mkdir()
    (tmp_path / "link").symlink_to("atlas")
    monkeypatch.chdir(tmp_path / "atlas")
    assert add_cells(Path(name), [cell("bowl", "a", 1)], TASKS, {}) == 1
    assert read_cells(tmp_path / "atlas")["method"].tolist() == ["a"]
    assert {path.name for path in tmp_path.iterdir()} <= {"atlas", "link", ".atlas.lock"}


def test_an_edition_begins_as_a_copy_of_another(tmp_path: Path) -> None:
    """Once there is something to add, and as a whole; its pictures and models come along."""
    start, folder = tmp_path / "package", tmp_path / "atlas"
    made = cell("bowl", "a", 2)._replace(made_with=frozenset({"numpy 2"}))
    add_cells(start, [made, cell("valley", "a", 2)], TASKS, {})
    (start / "models").mkdir()
    (start / "models" / "vae.npz").write_bytes(b"model")
    before = {path.name: path.read_bytes() for path in start.iterdir() if path.is_file()}
    assert add_cells(folder, [cell("bowl", "a", 1)], TASKS, {}, start) == 0
    other = cell("bowl", "b", 2)._replace(rounds=rounds(2, start=0.25))
    with pytest.raises(PlumblineError, match="initial design"):
        add_cells(folder, [other], TASKS, {}, start)
    assert not folder.exists()
    assert add_cells(folder, [cell("bowl", "b", 1)], TASKS, {}, start) == 1
    assert read_cells(folder)[["task", "method"]].to_numpy().tolist() == [["bowl", "a"], ["bowl", "b"], ["valley", "a"]]
    assert len(read_rounds(folder, ["bowl", "valley"])) == 3 * (2 + 1 + 2)
    assert read_tasks(folder)["measure"].tolist() == ["value", "value"]
    assert json.loads((folder / "edition.json").read_text())["made_with"] == ["numpy 2"]
    assert (folder / "models" / "vae.npz").is_file()
    assert {path.name: path.read_bytes() for path in start.iterdir() if path.is_file()} == before
    assert add_cells(folder, [cell("valley", "b", 1)], TASKS, {}, start) == 1
    assert len(read_cells(folder)) == 4, "what was added stays"


def test_tasks_that_are_no_longer_planned_stay(tmp_path: Path) -> None:
    add_cells(tmp_path, [cell("bowl", "a", 1), cell("valley", "a", 1)], TASKS, {})
    add_cells(tmp_path, [cell("bowl", "b", 1)], TASKS[TASKS["task"] == "bowl"], {})
    found = read_tasks(tmp_path)
    assert found[["task", "title", "measure"]].to_numpy().tolist() == [
        ["bowl", "A bowl", "value"],
        ["valley", "A valley", "value"],
    ]


def test_another_edition_is_refused_by_name(tmp_path: Path) -> None:
    add_cells(tmp_path, [cell("bowl", "a", 1)], TASKS, {})
    (tmp_path / "edition.json").write_text('{"edition": "2031.01"}\n')
    for attempt in (check_edition, lambda folder: add_cells(folder, [], TASKS, {})):
        with pytest.raises(
            PlumblineError, match=r"is the atlas 2031\.01; this version of plumbline reads the atlas 2026"
        ):
            attempt(tmp_path)


def test_no_atlas_and_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match="no atlas at"):
        check_edition(tmp_path)
    add_cells(tmp_path, [cell("bowl", "a", 1)], TASKS, {})
    path = tmp_path / "bowl.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(PlumblineError, match=r"bowl\.parquet is corrupt .*: take it from version control"):
        read_rounds(tmp_path, ["bowl"])
    (tmp_path / "cells.csv").write_text("task,method\n")
    with pytest.raises(PlumblineError, match=r"cells\.csv has no column 'class': take it from version control"):
        read_cells(tmp_path)
