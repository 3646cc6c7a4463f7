"""All records of an experiment, and whether any are missing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pyarrow as arrow

from plumbline import records
from plumbline.errors import PlumblineError
from plumbline.specs import Chunk

TRIAL = ["problem", "method", "seed"]


@dataclass(frozen=True)
class Grid:
    """The trials that an experiment must have: one a (problem, method, seed)."""

    expected: frozenset[tuple[str, str, int]]

    @classmethod
    def of(cls, chunks: Iterable[Chunk]) -> "Grid":
        """Return the grid that `chunks` cover."""
        return cls(
            frozenset(
                (chunk.spec.problem.label, chunk.spec.method.label, seed) for chunk in chunks for seed in chunk.seeds
            )
        )


@dataclass(frozen=True)
class Evidence:
    """What an experiment's figures and claims rest on.

    Attributes:
        rows: the evaluations of all trials that ended well.
        failures: a row for each trial that did not, with its error.
        snapshots: pictures of models, with the trial they belong to.
        illustration: what was computed without trials (see `plumbline.illustrations`).
    """

    rows: pd.DataFrame = field(default_factory=pd.DataFrame)
    failures: pd.DataFrame = field(default_factory=pd.DataFrame)
    snapshots: pd.DataFrame = field(default_factory=pd.DataFrame)
    illustration: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return int(self.rows["seed"].nunique()) if len(self.rows) else 0

    def trials(self, problem: str, method: str) -> pd.DataFrame:
        """Return the rows of one method on one problem.

        Raises:
            PlumblineError: there are none.
        """
        chosen = self.rows[(self.rows["problem"] == problem) & (self.rows["method"] == method)]
        if chosen.empty:
            known = sorted({f"{p} x {m}" for p, m in zip(self.rows["problem"], self.rows["method"], strict=True)})
            raise PlumblineError(f"no trials of {method!r} on {problem!r}; there are: {', '.join(known)}")
        return chosen


def collect(paths: Sequence[Path], grid: Grid, store: Path, allow_incomplete: bool) -> tuple[arrow.Table, arrow.Table]:
    """Return all records of an experiment and all snapshots.

    Args:
        paths: one Parquet file a chunk.
        grid: the trials that there must be.
        store: where snapshots lie.
        allow_incomplete: go on although trials failed or are missing.

    Raises:
        PlumblineError: the grid has holes, with the first of them and the remedy.
    """
    table = records.concatenate([records.read_table(path) for path in paths])
    records.check(table.to_pandas(maps_as_pydicts="strict"), f"{len(paths)} files of records")
    if not allow_incomplete:
        refuse_holes(table, grid)
    keys = table["key"].unique().to_pylist()
    pictures = [path for key in keys if (path := store / key / "snapshots.parquet").is_file()]
    snapshots = records.concatenate([records.read_table(path) for path in pictures]) if pictures else arrow.table({})
    return table, snapshots


def refuse_holes(table: arrow.Table, grid: Grid) -> None:
    """Raise PlumblineError where a trial of the grid failed or is not there."""
    frame = table.select([*TRIAL, "status", "error"]).to_pandas()
    failed = frame[frame["status"] == "error"]
    if len(failed):
        first = failed.iloc[0]
        raise PlumblineError(
            f"{len(failed)} of {len(grid.expected)} trials failed, the first: {first['problem']} {first['method']} "
            f"seed {first['seed']}: {first['error']}. See `plumbline failures`; mend and run again, or set "
            "`--config allow_incomplete=True` to go on without them"
        )
    missing = sorted(grid.expected - set(frame[TRIAL].itertuples(index=False, name=None)))
    if missing:
        problem, method, seed = missing[0]
        raise PlumblineError(
            f"{len(missing)} of {len(grid.expected)} trials are missing, the first: {problem} {method} seed {seed}"
        )


def evidence(path: Path | None, snapshots: Path | None = None, illustration: Path | None = None) -> Evidence:
    """Return the evidence in the files of an experiment: records and snapshots of its trials, and its illustration."""
    shown = pd.DataFrame() if illustration is None else records.read_table(illustration).to_pandas()
    if path is None:
        return Evidence(illustration=shown)
    frame = records.read_records(path)
    failed = frame[frame["status"] == "error"]
    broken = set(failed[TRIAL].itertuples(index=False, name=None))
    whole = [trial not in broken for trial in frame[TRIAL].itertuples(index=False, name=None)]
    rows = frame[whole].reset_index(drop=True)
    pictures = pd.DataFrame()
    if snapshots is not None and (table := records.read_table(snapshots)).num_rows:
        trials = rows[["key", *TRIAL]].drop_duplicates()
        pictures = table.to_pandas().merge(trials, on="key")
    return Evidence(rows, failed.reset_index(drop=True), pictures, shown)
