"""Trials that have run to their end, as the jobs of a run left them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.store import records
from plumbline.store.spec import TrialSpec
from plumbline.study.resolved import ResolvedRun


@dataclass(frozen=True)
class Finished:
    """A trial that has run to its end, and where its records lie.

    Attributes:
        key: of the trial.
        spec: with the labels of the study.
        path: file of records.
        error: why it failed, None if it did not.
        job: name of the job that ran it.
    """

    key: str
    spec: TrialSpec
    path: Path
    error: str | None
    job: str


def finished_trials(run: ResolvedRun, folder: Path, jobs: Mapping[str, str]) -> tuple[dict[str, list[Finished]], int]:
    """Return the trials of a run that have ended, by experiment, and how many jobs have left no records yet.

    Args:
        run: its jobs, and the experiments that they belong to.
        folder: of the jobs' records.
        jobs: names of jobs by the ids of their chunks.

    Raises:
        PlumblineError: a corrupt file; or there are jobs, and none of them has left any records.
    """
    trials: dict[str, list[Finished]] = {}
    read: dict[Path, dict[str, tuple[int, str | None]] | None] = {}
    for name, experiment in run.experiments.items():
        for chunk in experiment.chunks:
            path = chunk.path(folder)
            if path not in read:
                read[path] = _ends(path) if path.is_file() else None
            for key, (seed, error) in (read[path] or {}).items():
                one = Finished(key, chunk.spec.with_seed(seed), path, error, jobs.get(chunk.id, ""))
                trials.setdefault(name, []).append(one)
    waiting = sum(ended is None for ended in read.values())
    if read and waiting == len(read):
        raise PlumblineError(f"no records of any job in {folder}: run the trials first")
    return trials, waiting


def _ends(path: Path) -> dict[str, tuple[int, str | None]]:
    """Return seed and error of each trial in a file of records."""
    ends: dict[str, tuple[int, str | None]] = {}
    for row in records.read_table(path, ["key", "seed", "status", "error"]).to_pylist():
        ends[row["key"]] = (row["seed"], row["error"] if row["status"] == "error" else None)
    return ends
