"""Runs in bulk: rows of MLflow's own tables, inserted as its client would, some fifty times as fast."""

import hashlib
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.store.tracking.dbmodels.models import (
    SqlDataset,
    SqlExperiment,
    SqlInput,
    SqlInputTag,
    SqlLatestMetric,
    SqlMetric,
    SqlParam,
    SqlRun,
    SqlTag,
)
from sqlalchemy import Engine, create_engine, delete, event, select, text

from plumbline.tracking.artifacts import put
from plumbline.tracking.drafts import MADE_OF, Draft, Point
from plumbline.tracking.runs import experiment_id
from plumbline.tracking.stores import DATA_CONTEXT, SCHEME, WHOLE, Known, folder_of, location

SCHEMA = "dc11669786a5"
"""The revision of MLflow's tables that rows are made for here: that of MLflow 3.17."""

Row = tuple[Any, ...]

DATASETS = SqlDataset.__tablename__
_OF_METRIC = ("key", "value", "timestamp", "step", "is_nan", "run_uuid")
COLUMNS = {
    SqlRun.__tablename__: (
        *("run_uuid", "name", "start_time", "end_time", "status", "lifecycle_stage", "source_type", "source_name"),
        *("entry_point_name", "source_version", "user_id", "artifact_uri", "experiment_id"),
    ),
    SqlTag.__tablename__: ("key", "value", "run_uuid"),
    SqlParam.__tablename__: ("key", "value", "run_uuid"),
    SqlMetric.__tablename__: _OF_METRIC,
    SqlLatestMetric.__tablename__: _OF_METRIC,
    DATASETS: (
        *("dataset_uuid", "experiment_id", "name", "digest", "dataset_source_type", "dataset_source"),
        *("dataset_schema", "dataset_profile"),
    ),
    SqlInput.__tablename__: ("input_uuid", "source_type", "source_id", "destination_type", "destination_id"),
    SqlInputTag.__tablename__: ("input_uuid", "name", "value"),
}
"""What is inserted into each table, those that others point to first."""


def knows(client: MlflowClient, engine: Engine) -> bool:
    """Return whether the tables of a database are those that rows are made for here; the client makes them first."""
    client.search_experiments(max_results=1)
    with engine.connect() as connection:
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == [SCHEMA]


def engine_of(uri: str) -> Engine:
    """Return an engine for a SQLite database that one process writes to in long transactions."""
    engine = create_engine(uri)

    @event.listens_for(engine, "connect")
    def _(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA synchronous=NORMAL")  # in WAL mode a power cut costs the last import, nothing else
        connection.execute("PRAGMA cache_size=-200000")  # kilobytes: indices are read and written at many places
        connection.execute("PRAGMA wal_autocheckpoint=20000")

    return engine


class DatabaseStore:
    """A store of which this process is the only writer.

    Ids of runs follow from what the runs are made of, so that a database that is made anew has the addresses of the
    one before, and the same folders of artifacts.

    Args:
        client: of the database.
        engine: of the same.
        artifacts: the folder that stands for `mlflow-artifacts:/`.
    """

    def __init__(self, client: MlflowClient, engine: Engine, artifacts: Path) -> None:
        self.client = client
        self.engine = engine
        self.artifacts = artifacts

    def experiment(self, name: str, place: str) -> str:
        """Return the id of the MLflow experiment of a name, made where there is none."""
        return experiment_id(self.client, name, location(place))

    def runs(self, experiment: str) -> Iterator[Known]:
        """Yield the imported runs of an experiment; those deleted in the user interface are not whole."""
        query = (
            select(SqlRun.run_uuid, SqlTag.value, SqlRun.status, SqlRun.lifecycle_stage)
            .join(SqlTag, SqlTag.run_uuid == SqlRun.run_uuid)
            .where(SqlRun.experiment_id == int(experiment), SqlTag.key == MADE_OF)
        )
        with self.engine.connect() as connection:
            for id, made_of, status, stage in connection.execute(query):
                yield Known(id, made_of, stage == "active" and status in WHOLE)

    def metrics(self, experiment: str) -> set[str]:
        """Return the names of the metrics of an experiment's runs."""
        query = (
            select(SqlLatestMetric.key)
            .join(SqlRun, SqlRun.run_uuid == SqlLatestMetric.run_uuid)
            .where(SqlRun.experiment_id == int(experiment))
            .distinct()
        )
        with self.engine.connect() as connection:
            return {*connection.execute(query).scalars()}

    def add(self, experiment: str, drafts: Iterable[Draft]) -> None:
        """Keep new runs, all of them or none: their artifacts come first, where nobody looks for them yet."""
        number = int(experiment)
        with self.engine.begin() as connection:
            found = connection.execute(
                select(SqlExperiment.name, SqlExperiment.artifact_location).where(SqlExperiment.experiment_id == number)
            )
            name, place = found.one()
            rows: dict[str, list[Row]] = {table: [] for table in COLUMNS}
            for draft in drafts:
                id = _id(name, draft.made_of)
                uri = f"{place}/{id}/artifacts"
                put(draft.files, folder_of(uri, self.artifacts))
                _add_rows(rows, draft, id, number, uri)
            for table, values in rows.items():
                if values:
                    connection.exec_driver_sql(_insert(table), values)

    def finish(self) -> None:
        """Let SQLite estimate how many rows its indices tell apart: sorted lists of 20,000 runs then take seconds.

        Without that it plans them in two minutes.
        """
        with self.engine.begin() as connection:
            connection.exec_driver_sql("PRAGMA analysis_limit=1000")  # rows of an index: enough, and no time
            connection.exec_driver_sql("ANALYZE")

    def remove(self, runs: Collection[str]) -> None:
        """Remove runs with their artifacts: they can be made again from what they were made of."""
        uris = []
        with self.engine.begin() as connection:
            for run in runs:
                uris.append(connection.execute(select(SqlRun.artifact_uri).where(SqlRun.run_uuid == run)).scalar_one())
                of_run = (SqlInput.destination_type == "RUN") & (SqlInput.destination_id == run)
                inputs = select(SqlInput.input_uuid).where(of_run)
                connection.execute(delete(SqlInputTag).where(SqlInputTag.input_uuid.in_(inputs)))
                connection.execute(delete(SqlInput).where(of_run))
                for model in (SqlMetric, SqlLatestMetric, SqlParam, SqlTag, SqlRun):
                    connection.execute(delete(model).where(model.run_uuid == run))
        for uri in uris:
            if uri.startswith(SCHEME):
                shutil.rmtree(folder_of(uri, self.artifacts).parent, ignore_errors=True)


def _id(*parts: str) -> str:
    """Return the id of a row, which follows from what it is."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _insert(table: str) -> str:
    """Return the statement that inserts a row; a dataset may be there already."""
    columns = ", ".join(f'"{column}"' for column in COLUMNS[table])
    marks = ", ".join("?" for _ in COLUMNS[table])
    return f"INSERT OR {'IGNORE' if table == DATASETS else 'ABORT'} INTO {table} ({columns}) VALUES ({marks})"


def _add_rows(rows: Mapping[str, list[Row]], draft: Draft, id: str, experiment: int, uri: str) -> None:
    """Add the rows of a run, as MLflow's client would make them."""
    of_run = (id, draft.name, draft.begin, draft.end, draft.status, "active", "UNKNOWN", "", "", "", "unknown")
    rows[SqlRun.__tablename__].append((*of_run, uri, experiment))
    tags = {**draft.tags, MADE_OF: draft.made_of, "mlflow.runName": draft.name}
    rows[SqlTag.__tablename__] += [(key, value, id) for key, value in tags.items()]
    rows[SqlParam.__tablename__] += [(key, value, id) for key, value in draft.params.items()]
    rows[SqlMetric.__tablename__] += [(*point, 0, id) for point in draft.points]
    latest: dict[str, Point] = {}
    for point in draft.points:
        before = latest.get(point.name)
        if before is None or (point.step, point.time) >= (before.step, before.time):
            latest[point.name] = point
    rows[SqlLatestMetric.__tablename__] += [(*point, 0, id) for point in latest.values()]
    for one in draft.datasets:
        data = _id(str(experiment), one.name, one.digest)
        about = (one.name, one.digest, one.source_type, one.source, one.schema, one.profile)
        rows[DATASETS].append((data, experiment, *about))
        rows[SqlInput.__tablename__].append((_id(data, id), "DATASET", data, "RUN", id))
        rows[SqlInputTag.__tablename__].append((_id(data, id), DATA_CONTEXT, "trial"))
