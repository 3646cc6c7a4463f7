"""Small editions of the atlas, from trials of a few rounds."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.compute as compute
import pyarrow.parquet as parquet

from plumbline.analysis.atlas.edition import Cell, add_cells
from plumbline.api.editions import AtlasGrid, finished_cells
from plumbline.registry.references import InitialDesign, MethodRef, ProblemRef
from plumbline.store import records
from plumbline.store.spec import Budget, Chunk, Diagnostics, TrialSpec
from plumbline.trials import run_trial

TASK = "atlas-forrester"
TASKS = {TASK: "forrester", "common-branin-0.0": "branin"}
"""Tasks of the atlas, here with their problems as they are registered."""


def spec_of(method: str, task: str = TASK) -> TrialSpec:
    return TrialSpec(
        problem=ProblemRef(name=TASKS[task]),
        method=MethodRef(name=method),
        seed=0,
        budget=Budget(initial=InitialDesign(design="sobol", size=4), rounds=3),
        diagnostics=Diagnostics(alphas=(0.5, 0.2, 0.05), recommend=True),
        task=task,
    )


def run_chunk(chunk: Chunk, results: Path) -> None:
    """Run the trials of a chunk, and write its records."""
    tables = [run_trial(spec, results / "store", results).table(spec) for spec in chunk.specs()]
    records.write_table(chunk.path(results / "trials"), records.concatenate(tables))


def cells_of(chunks: Sequence[Chunk], results: Path) -> list[Cell]:
    """Return the cells of those chunks that were run."""
    experiment = SimpleNamespace(chunks=chunks, trials=[(chunk.spec, range(len(chunk.seeds))) for chunk in chunks])
    some: Any = SimpleNamespace(experiments=[experiment])
    return list(finished_cells(some, results))


def small_edition(folder: Path, results: Path, grid: AtlasGrid) -> None:
    """Make an edition of two tasks with two methods, two seeds each."""
    chunks = [Chunk(spec=spec_of(name, task), seeds=(0, 1)) for task in TASKS for name in ("random", "sobol")]
    for chunk in chunks:
        run_chunk(chunk, results)
    add_cells(folder, cells_of(chunks, results), grid.tasks(), {})


def shift_starts(edition: Path, task: str) -> None:
    """Let the trials of a task begin elsewhere, as those of another trained model would."""
    path = edition / f"{task}.parquet"
    table = parquet.read_table(path)
    shifted = compute.add(table["best"], 0.5)
    parquet.write_table(table.set_column(table.column_names.index("best"), "best", shifted), path)


def small_grid(grid: AtlasGrid) -> Any:
    """Return what plans the tasks of the small edition."""
    return SimpleNamespace(entries=grid.entries, specs=lambda: {task: spec_of("random", task) for task in TASKS})
