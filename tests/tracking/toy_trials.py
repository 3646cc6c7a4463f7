"""Trials of a toy study as the workflow leaves them, and what MLflow has of them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Run

from plumbline.store import records
from plumbline.study.plan import Plan
from plumbline.tracking.importing import import_trials
from plumbline.trials import run_trial


class Results:
    """Trials that were run, as the workflow leaves them."""

    def __init__(self, root: Path, plan: Plan) -> None:
        self.plan, self.root, self.store = plan, root, root / "store"
        self.uri = f"sqlite:///{root}/mlflow.db"
        self.trials = root / "trials"
        self.said = ""

    def beside(self, database: Path, root: Path) -> "Results":
        """Return the same trials with a copy of a database in another folder."""
        other = Results(root, self.plan)
        other.store, other.trials = self.store, self.trials
        copy(database, root / "mlflow.db")
        return other

    @property
    def chunks(self) -> list[Path]:
        """The files of the jobs' records."""
        return [chunk.path(self.trials) for chunk in self.plan.resolve("TOY-F1").chunks]

    def run(self, *observers: Any) -> None:
        """Run all trials, or find them done, and gather their records."""
        for chunk, path in zip(self.plan.resolve("TOY-F1").chunks, self.chunks, strict=True):
            tables = [run_trial(s, self.store, self.root, observers).table(s) for s in chunk.specs()]
            records.write_table(path, records.concatenate(tables))

    def track(self, plan: Plan | None = None, uri: str | None = None, **more: Any) -> str:
        run = (plan or self.plan).run
        return import_trials(run, self.trials, self.root / "quick", self.store, uri or self.uri, **more)

    def client(self) -> MlflowClient:
        return MlflowClient(self.uri)


def copy(source: Path, target: Path) -> None:
    """Copy a database that may be open."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


def runs(client: MlflowClient, *experiments: str) -> dict[str, Run]:
    """Return all runs by name, and fail if two have the same."""
    ids = [client.get_experiment_by_name(name).experiment_id for name in experiments or ("quick/toy/TOY-F1",)]
    found = client.search_runs(ids)
    named = {run.info.run_name: run for run in found}
    assert len(named) == len(found)
    return named


def everything(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables."""
    with closing(sqlite3.connect(database)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in tables}
