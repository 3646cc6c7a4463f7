"""All records of an experiment in one file, and whether any are missing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as arrow
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic
from plumbline.store import records
from plumbline.store.folder import TrialFolder, failures_command
from plumbline.store.spec import Chunk

TRIAL = ["task", "method", "seed"]

Name = tuple[str, str, int]
"""Task, method and seed of a trial."""


@dataclass(frozen=True)
class Grid:
    """The trials that an experiment must have: one a (task, method, seed)."""

    experiment: str
    expected: frozenset[Name]

    @classmethod
    def of(cls, experiment: str, chunks: Iterable[Chunk]) -> "Grid":
        """Return the grid that the `chunks` of an experiment cover."""
        return cls(
            experiment,
            frozenset((chunk.spec.task, chunk.spec.method.label, seed) for chunk in chunks for seed in chunk.seeds),
        )


def collect(
    paths: Sequence[Path], grid: Grid, store: Path, allow_incomplete: bool, output: Path, snapshots: Path
) -> None:
    """Write all records of an experiment to `output` and all its pictures of models to `snapshots`.

    File by file: no more than one job's records are in memory.

    Args:
        paths: one Parquet file a job, in the order of the grid.
        grid: the trials that there must be.
        store: where pictures lie.
        allow_incomplete: go on although trials failed or are missing.
        output: written whole, or not at all.
        snapshots: an empty table where there are no pictures.

    Raises:
        PlumblineError: a file that is not there or breaks the schema; or the grid has holes: the first of them and the
            remedy.
    """
    there: set[Name] = set()
    failed: list[tuple[Name, str]] = []
    keys: dict[str, None] = {}
    schema = schema_of(paths)
    with atomic(output) as part:
        with parquet.ParquetWriter(part, schema, compression="zstd", write_page_checksum=True) as writer:
            for path in paths:
                table = records.read_table(path)
                records.check(table, path)
                refuse_unknown_columns(table, schema, path)
                writer.write_table(conform(table, schema))
                refuse_foreign_rows(names_of(table), there, grid, path)
                there |= names_of(table)
                failed += failures_of(table)
                keys |= dict.fromkeys(compute.unique(table["key"]).to_pylist())
        if not allow_incomplete:
            refuse_holes(there, failed, grid, store)
    pictures = [table for key in keys if (table := TrialFolder(store, key).snapshots()) is not None]
    shown = records.concatenate(pictures) if pictures else arrow.table({})
    records.write_table(snapshots, shown)


def schema_of(paths: Sequence[Path]) -> arrow.Schema:
    """Return the columns of collected records: with points where one of the files has them, for pictures."""
    schema = records.RECORD
    if not any("x" in records.read_names(path) for path in paths):
        schema = schema.remove(schema.get_field_index("x"))
    for name in records.SECONDS:
        schema = schema.append(arrow.field(name, arrow.float64()))
    return schema


def conform(table: arrow.Table, schema: arrow.Schema) -> arrow.Table:
    """Return a table with the columns of `schema`, null where it has none."""
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else arrow.nulls(len(table), field.type)
        for field in schema
    ]
    return arrow.table(columns, schema=schema)


def names_of(table: arrow.Table) -> set[Name]:
    """Return task, method and seed of each trial in a table."""
    found = table.select(TRIAL).group_by(TRIAL).aggregate([])
    return {(row["task"], row["method"], row["seed"]) for row in found.to_pylist()}


def failures_of(table: arrow.Table) -> list[tuple[Name, str]]:
    """Return name and error of each trial in a table that failed."""
    broken = table.select([*TRIAL, "error"]).filter(compute.equal(table["status"], "error"))
    return [((row["task"], row["method"], row["seed"]), row["error"]) for row in broken.to_pylist()]


def refuse_unknown_columns(table: arrow.Table, schema: arrow.Schema, source: Path) -> None:
    """Raise PlumblineError for a column that no version has: one whose name is damaged would be taken as empty."""
    if unknown_names := sorted(set(table.column_names) - set(schema.names) - {"x"}):
        raise PlumblineError(f"{source} has an unknown column {unknown_names[0]!r}: delete it and run again")


def refuse_foreign_rows(names: set[Name], before: set[Name], grid: Grid, source: Path) -> None:
    """Raise PlumblineError where a job's records are of a trial that the grid has not, or that another job has."""
    again = "delete the file and run the job again"
    for words, wrong in (("not of the grid", names - grid.expected), ("which another job has too", names & before)):
        if wrong:
            raise PlumblineError("{} holds records of {}/{} seed {}, {}: {}".format(source, *min(wrong), words, again))


def refuse_holes(there: set[Name], failed: Sequence[tuple[Name, str]], grid: Grid, store: Path) -> None:
    """Raise PlumblineError where a trial of the grid failed or is not there."""
    if failed:
        (task, method, seed), error = failed[0]
        some = len(failed) < len(there)
        # A second `--config` would replace the first one.
        setting = "allow_incomplete=True" if some else f"'without=[{grid.experiment}]'"
        raise PlumblineError(
            f"{len(failed)} of {len(grid.expected)} trials failed, the first: {task} {method} seed {seed}: {error}. "
            f"See `{failures_command(store)}`; mend and run again, or add `{setting}` to your `--config` to go on "
            f"without {'them' if some else 'the experiment'}"
        )
    missing = sorted(grid.expected - there)
    if missing:
        task, method, seed = missing[0]
        raise PlumblineError(
            f"{len(missing)} of {len(grid.expected)} trials are missing, the first: {task} {method} seed {seed}"
        )
