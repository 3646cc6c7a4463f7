"""An edition of the atlas: its files, read and written.

A folder holds one Parquet file per task, `tasks.csv`, `cells.csv` with one row per method and task, be it empty, and
`edition.json`. Cells are added as they are finished; one that is there is replaced by one of as many seeds or more.
"""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as parquet

from plumbline.analysis.atlas.rounds import COLUMNS, LEVELS
from plumbline.analysis.atlas.starts import first_apart
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic, read_csv, read_json, write_text
from plumbline.core.locks import locked_folder
from plumbline.store.records import read_table
from plumbline.store.reference_files import EditionFiles

EDITION = "2026.12"
"""Of the files that this version of plumbline reads and writes."""

REMEDY = "take it from version control"

PAIR = ["task", "method"]

CELLS = [*PAIR, "class", "seeds", "failed", "empty", "commit", "libraries", "seconds"]
"""Columns of `cells.csv`: `empty` is the reason of a cell without trials, `seconds` the median wall time of a trial."""

NOT_PLANNED = "not planned: docs/results/atlas-protocol.md says where this method runs"
"""The reason of a cell that a method could have, and that the protocol leaves out."""

FACTS = ["measure", "inputs"]
"""What a task's trials tell: what `best` is, and the number of inputs."""

TASKS = ["task", "track", "title", "initial", "rounds", *FACTS]
"""Columns of `tasks.csv`."""

EXACT = ("optimum", "best", "incumbent")
"""Columns that are kept to the last bit: regrets are differences of them."""


def _kind(name: str) -> arrow.DataType:
    if name in LEVELS:
        return arrow.bool_()
    return arrow.float64() if name in EXACT else arrow.float32()


SCHEMA = arrow.schema(
    [
        ("method", arrow.dictionary(arrow.int32(), arrow.string())),
        ("seed", arrow.int16()),
        ("round", arrow.int16()),
        *((name, _kind(name)) for name in COLUMNS[2:]),
    ]
)
"""Of a task's file."""


class Cell(NamedTuple):
    """A method on a task.

    Attributes:
        about: its row in `cells.csv`.
        rounds: with `rounds.COLUMNS`; None of an empty cell.
        facts: of its task, `FACTS`; empty of an empty cell.
        made_with: versions of Python and packages: `torch 2.13.0`.
    """

    about: Mapping[str, Any]
    rounds: pd.DataFrame | None
    facts: Mapping[str, Any]
    made_with: frozenset[str] = frozenset()

    @property
    def pair(self) -> tuple[str, str]:
        """Task and method."""
        return str(self.about["task"]), str(self.about["method"])


def read_cells(folder: Path) -> pd.DataFrame:
    """Return `cells.csv` of an edition.

    Raises:
        PlumblineError: there is none, or it is damaged.
    """
    return read_csv(EditionFiles(folder).cells, CELLS, remedy=REMEDY)


def read_tasks(folder: Path) -> pd.DataFrame:
    """Return `tasks.csv` of an edition.

    Raises:
        PlumblineError: there is none, or it is damaged.
    """
    return read_csv(EditionFiles(folder).tasks, TASKS, remedy=REMEDY)


def missing_pairs(folder: Path) -> pd.DataFrame:
    """Return the pairs of task and method that have neither trials nor a reason why there are none, with `PAIR`.

    Raises:
        PlumblineError: a table is damaged, or is not there.
    """
    cells = read_cells(folder)
    every = pd.MultiIndex.from_product([read_tasks(folder)["task"], cells["method"].unique()], names=PAIR)
    return every.difference(pd.MultiIndex.from_frame(cells[PAIR])).to_frame(index=False)


def missing_forecasts(folder: Path) -> pd.DataFrame:
    """Return the missing pairs of methods that forecast on other tasks: the primary analyses wait for them."""
    missing = missing_pairs(folder)
    if missing.empty:
        return missing
    cells = read_cells(folder)
    rounds = read_rounds(folder, cells.loc[cells["seeds"] > 0, "task"].unique())
    forecasters = rounds.loc[rounds[list(LEVELS)].notna().any(axis=1), "method"].unique()
    return missing[missing["method"].isin(forecasters)]


def is_edition(folder: Path) -> bool:
    """Return whether a folder holds an edition, of this version of plumbline or of another."""
    return EditionFiles(folder).edition.is_file()


def is_answered(folder: Path) -> bool:
    """Return whether a folder has an edition with all trials that the primary analyses ask for."""
    return is_edition(folder) and missing_forecasts(folder).empty


def check_edition(folder: Path) -> None:
    """Raise PlumblineError where a folder holds no atlas, or one of another edition."""
    if not is_edition(folder):
        raise PlumblineError(
            f"no atlas at {folder}: `plumbline atlas --add results` makes one of trials of the study atlas "
            "(docs/guide/atlas.md)"
        )
    there = read_json(EditionFiles(folder).edition, ("edition",), REMEDY)["edition"]
    if there != EDITION:
        raise PlumblineError(f"{folder} is the atlas {there}; this version of plumbline reads the atlas {EDITION}")


def read_rounds(folder: Path, tasks: Iterable[str]) -> pd.DataFrame:
    """Return the rounds of tasks, one row per task, method, seed and round.

    Coverage is 0 or 1, NaN without a forecast: pandas has no truth values with gaps but objects.

    Args:
        folder: of an edition.
        tasks: their names.

    Raises:
        PlumblineError: the file of a task is missing or damaged.
    """
    tables = [_of_task(task, _read(EditionFiles(folder).rounds(task))) for task in tasks]
    if not tables:
        return pd.DataFrame(columns=[*PAIR, *COLUMNS])
    # As one table of Arrow's, since pandas copies each of the tables when it joins them.
    rounds = arrow.concat_tables(tables).unify_dictionaries().select([*PAIR, *COLUMNS]).to_pandas()
    in_order = {name: rounds[name].cat.set_categories(sorted(rounds[name].cat.categories)) for name in PAIR}
    return rounds.assign(**in_order)


def _of_task(task: str, table: arrow.Table) -> arrow.Table:
    names = arrow.DictionaryArray.from_arrays(arrow.array([0] * len(table), arrow.int32()), [task])
    return table.append_column("task", names)


def _read(path: Path) -> arrow.Table:
    """Return a task's file with `SCHEMA`'s columns, 0 or 1 for truth values, whoever wrote the file and as what."""
    table = read_table(path, SCHEMA.names, remedy=REMEDY)
    try:
        table = table.cast(SCHEMA)
    except arrow.ArrowException as error:
        raise PlumblineError(f"{path} is not a table of an atlas ({error}): {REMEDY}") from error
    for name in LEVELS:
        numbers = table[name].cast(arrow.int8()).cast(arrow.float32())
        table = table.set_column(table.column_names.index(name), name, numbers)
    return table


def add_cells(
    folder: Path, cells: Iterable[Cell], tasks: pd.DataFrame, facts: Mapping[str, Any], start: Path | None = None
) -> int:
    """Add cells to an edition, task by task; return how many are new or were replaced.

    A cell of fewer seeds than the edition's is left out.

    Args:
        folder: of the edition, made where there is none.
        cells: the cells.
        tasks: `tasks.csv` of all tasks of the atlas, but for what trials tell.
        facts: of `edition.json`, besides its name.
        start: an edition that is copied into the folder first, if there is none yet.

    Raises:
        PlumblineError: the folder holds another edition, trials of a task have other initial designs than those that
            are there, or a set holds an observation in part.
    """
    with locked_folder(folder, "adds to this atlas"):
        before = folder if start is None or is_edition(folder) or not is_edition(start) else start
        return _add(folder, before, cells, tasks, facts)


def _add(folder: Path, before: Path, cells: Iterable[Cell], tasks: pd.DataFrame, facts: Mapping[str, Any]) -> int:
    """Add cells to what is in the folder `before`: there, or in a copy, which is an edition once all is written."""
    if is_edition(before):
        check_edition(before)
    known = read_cells(before) if EditionFiles(before).cells.is_file() else pd.DataFrame(columns=CELLS)
    seeds = known.set_index(PAIR)["seeds"].to_dict()
    new = [cell for cell in cells if cell.about["seeds"] >= seeds.get(cell.pair, 0)]
    tasks_of_new = dict.fromkeys(cell.pair[0] for cell in new)
    rounds = {task: _rounds_with(before, task, [cell for cell in new if cell.pair[0] == task]) for task in tasks_of_new}
    told, made_with = _with_facts(tasks, before, new), _made_with(before).union(*(cell.made_with for cell in new))
    if before != folder:
        if not new:
            return 0
        unfinished = shutil.ignore_patterns(EditionFiles(before).edition.name)
        shutil.copytree(before, folder, ignore=unfinished, dirs_exist_ok=True)
    for task, every in rounds.items():
        if every is not None:
            _write_rounds(EditionFiles(folder).rounds(task), every)
    pairs = {cell.pair for cell in new}
    stays = [pair not in pairs for pair in known[PAIR].itertuples(index=False, name=None)]
    about = pd.DataFrame([cell.about for cell in new], columns=CELLS).astype({"seconds": float})
    _write_csv(EditionFiles(folder).cells, pd.concat([known[stays], about]).sort_values(PAIR, kind="stable"))
    _write_csv(EditionFiles(folder).tasks, told)
    edition = {"edition": EDITION, **facts, "made_with": sorted(made_with)}
    write_text(EditionFiles(folder).edition, json.dumps(edition, indent=1) + "\n")
    return len(new)


def _made_with(folder: Path) -> frozenset[str]:
    """Return what the cells that are there were made with."""
    if not is_edition(folder):
        return frozenset()
    return frozenset(read_json(EditionFiles(folder).edition, ("edition",), REMEDY).get("made_with", []))


def _with_facts(tasks: pd.DataFrame, folder: Path, cells: Sequence[Cell]) -> pd.DataFrame:
    """Return `tasks.csv` with what trials told, now or before, and with the tasks that were there besides."""
    before = read_tasks(folder) if EditionFiles(folder).tasks.is_file() else pd.DataFrame(columns=TASKS)
    told = pd.DataFrame([{"task": cell.pair[0], **cell.facts} for cell in cells if cell.facts])
    known = pd.concat([before.loc[before["measure"].notna(), ["task", *FACTS]], told])
    others = before.loc[~before["task"].isin(tasks["task"]), list(tasks)]
    every = pd.concat([tasks, others]) if len(others) else tasks
    return every.merge(known.drop_duplicates("task", keep="last"), on="task", how="left")[TASKS]


def _rounds_with(folder: Path, task: str, cells: Sequence[Cell]) -> pd.DataFrame | None:
    """Return the rounds of a task's file with those of some cells, in place of the same methods'; None of no rounds.

    Raises:
        PlumblineError: their initial designs have other values.
    """
    frames = [cell.rounds.assign(method=cell.pair[1]) for cell in cells if cell.rounds is not None]
    path = EditionFiles(folder).rounds(task)
    if path.is_file():
        old = _read(path).to_pandas().astype({"method": str})
        frames.append(old[~old["method"].isin([cell.pair[1] for cell in cells])])
    if not frames:
        return None
    every = pd.concat(frames, ignore_index=True).sort_values(["method", "seed", "round"], kind="stable")
    if apart := first_apart(every):
        raise PlumblineError(
            f"{task}: the best value of seed {apart.seed}'s initial design is {apart.value:.6g} under {apart.method} "
            f"and {apart.other_value:.6g} under {apart.other}: these trials read other data or another trained model"
        )
    return every


def _write_rounds(path: Path, rounds: pd.DataFrame) -> None:
    parts = rounds[list(LEVELS)].dropna(how="all").isin([0, 1]).all(axis=1)
    if not parts.all():
        raise PlumblineError(
            f"{path.stem}: sets of {rounds.loc[parts.index[~parts][0], 'method']} hold observations in part "
            "(randomised or marginal ones): an edition has sets that do or do not"
        )
    rounds = rounds.astype({"method": "category", **dict.fromkeys(LEVELS, "boolean")})
    table = arrow.Table.from_pandas(rounds[SCHEMA.names], SCHEMA, preserve_index=False).replace_schema_metadata(None)
    with atomic(path) as part:
        parquet.write_table(table, part, compression="zstd", compression_level=15, write_page_checksum=True)


def _write_csv(path: Path, table: pd.DataFrame) -> None:
    with atomic(path) as part:
        table.to_csv(part, index=False, float_format="%.15g")
