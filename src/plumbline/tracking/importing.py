"""Finished trials -> MLflow, by the only writer of its database."""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from shlex import quote as shell_quote
from urllib.parse import quote, urlsplit

import pandas as pd
import pyarrow as arrow
import pyarrow.compute as compute
from mlflow import MlflowClient
from mlflow.entities import Metric, Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from sqlalchemy.exc import SQLAlchemyError

from plumbline.core.errors import PlumblineError
from plumbline.core.locks import locked
from plumbline.store import records
from plumbline.store.folder import TrialFolder
from plumbline.store.observers import title
from plumbline.store.spec import TrialSpec
from plumbline.study.experiments import Study
from plumbline.study.resolved import ResolvedRun
from plumbline.tracking.models import import_models
from plumbline.tracking.runs import (
    ERROR,
    MARK,
    ROWS,
    TRIAL,
    clip,
    experiment_id,
    live_experiment,
    log_metrics,
    log_params,
    logged_rounds,
    milliseconds,
    outcome,
    round_metrics,
    run_params,
    run_tags,
    trial_metrics,
)

SUMMARY = "plumbline.summary"

ARTIFACTS = "mlartifacts"
"""The folder of artifacts beside the database."""

PAGE = 1000
"""Runs in one page of a search."""


@dataclass
class Finished:
    """A trial that has run to its end, and where its records lie.

    Attributes:
        key: of the trial.
        spec: with the labels of the study.
        path: file of records.
        error: why it failed, None if it did not.
        experiments: those of the study that it is part of.
    """

    key: str
    spec: TrialSpec
    path: Path
    error: str | None
    experiments: list[str] = field(default_factory=list)


def finished_trials(run: ResolvedRun, folder: Path) -> tuple[dict[str, dict[str, Finished]], int]:
    """Return the trials of a run that have ended, by study and key, and how many jobs have left no records yet.

    Args:
        run: its jobs, and the experiments that they belong to.
        folder: of the jobs' records.

    Raises:
        PlumblineError: a corrupt file; or there are jobs, and none of them has left any records.
    """
    trials: dict[str, dict[str, Finished]] = {}
    jobs: dict[Path, dict[str, tuple[int, str | None]] | None] = {}
    for name, experiment in run.experiments.items():
        found = trials.setdefault(experiment.study.study, {})
        for chunk in experiment.chunks:
            path = chunk.path(folder)
            if path not in jobs:
                jobs[path] = _ends(path) if path.is_file() else None
            for key, (seed, error) in (jobs[path] or {}).items():
                trial = found.setdefault(key, Finished(key, chunk.spec.with_seed(seed), path, error))
                if name not in trial.experiments:
                    trial.experiments.append(name)
    missing = sum(ended is None for ended in jobs.values())
    if jobs and missing == len(jobs):
        raise PlumblineError(f"no records of any of the {len(jobs)} jobs in {folder}: run the trials first")
    return trials, missing


def _ends(path: Path) -> dict[str, tuple[int, str | None]]:
    """Return seed and error of each trial in a file of records."""
    table = records.read_table(path, ["key", "seed", "status", "error"])
    ends: dict[str, tuple[int, str | None]] = {}
    for row in table.to_pylist():
        ends[row["key"]] = (row["seed"], row["error"] if row["status"] == "error" else None)
    return ends


def import_trials(
    run: ResolvedRun, trials: Path, artifacts: Path, store: Path, uri: str, data: Path | None = None
) -> str:
    """Import finished trials into MLflow; what is there already, whole, stays as it is.

    One MLflow experiment a study, one run a trial, and one run a preset that sums the study up, with its
    figures and tables. The models that trials read have an experiment too, with the curves of their training.
    A run that was left unfinished by an import or a stream that broke off is made anew.

    Args:
        run: its experiments, jobs and preset.
        trials: the folder of the jobs' records.
        artifacts: the folder of the preset's results: `figures/`, `tables/`, `claims.csv`, `report.html`.
        store: the folder of all trials.
        uri: `sqlite:///` and a path, where this must be the only writer; or `http(s)://` of a server.
        data: the folder of built inputs; None to leave the models out.

    Returns:
        A line that says what was imported, one that says how to look at it, and an address a study.

    Raises:
        PlumblineError: an address that is none, records that cannot be read, a database that is none, of another
            version or held by another program, a server that does not answer.
    """
    database = _database(uri)
    finished, waiting = finished_trials(run, trials)
    new = old = failed = 0
    pages = []
    try:
        with _opened(uri) as (client, root):
            for name, wanted in finished.items():
                study = _StudyImport(client, run, run.studies[name], store, root)
                imported = study.add(wanted)
                study.summarise(wanted, artifacts)
                new, old = new + imported, old + len(wanted) - imported
                failed += sum(trial.error is not None for trial in wanted.values())
                pages.append(f"  {name}: {_page(uri, study.experiment)}")
            models = None if data is None else import_models(client, run, data, root)
            if models is not None:
                pages.append(f"  models: {_page(uri, models)}")
    except (MlflowException, SQLAlchemyError, sqlite3.DatabaseError) as error:
        raise PlumblineError(f"MLflow at {uri}: {_remedy(error)}") from error
    counts = f"{new} trials imported, {old} there already, {failed} of all failed"
    left = f", {waiting} jobs not run yet" if waiting else ""
    command = f"mlflow ui --backend-store-uri {shell_quote(uri)}"
    look = f"look at them with `{command}` at" if database else "look at them at"
    return "\n".join([f"{counts}{left}; {look}", *pages])


def _page(uri: str, experiment: str) -> str:
    """Return the address of an experiment's runs; without the workflow type MLflow shows traces, and there are none."""
    server = "http://127.0.0.1:5000" if _database(uri) else uri.rstrip("/")
    return f"{server}/#/experiments/{experiment}?workflowType=machine_learning"


def _database(uri: str) -> Path | None:
    """The file of a SQLite URI, None of the address of a server.

    Raises:
        PlumblineError: a URI that is neither.
    """
    wrong = PlumblineError(f"MLflow at {uri!r}: give sqlite:///FILE or the http(s)://HOST of a server")
    scheme, separator, rest = uri.partition("://")
    if scheme == "sqlite" and separator:
        if not rest.startswith("/"):
            raise wrong
        path = Path(rest[1:])
        if "?" in rest:
            raise PlumblineError(f"MLflow at {uri!r}: a name with ? is cut there in a URI: name another file")
        if rest.endswith("/") or not path.name or path.name.startswith(":") or path.is_dir():
            raise PlumblineError(f"MLflow at {uri!r}: name a file, as in sqlite:///results/mlflow.db")
        return path
    try:
        parts = urlsplit(uri)
        known = scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that are no IPv6 address, or a port that is no number
        known = False
    if not known:
        raise wrong
    return None


def _remedy(error: Exception) -> str:
    """What to do about an error of MLflow or SQLite, in a line."""
    text = " ".join(str(error).split())
    for words, remedy in REMEDIES.items():
        if words in text:
            return remedy
    return clip(text, 300)


REMEDIES = {
    "is locked": "another program has the database open for writing: stop it, and run the same command again",
    "disk is full": "disk full: free some space and run the same command again; what is imported is kept",
    "readonly database": "no permission to write: check the owner of the file and of its folder, or name another --uri",
    "unable to open database file": "the file cannot be opened: check its folder and its owner, or name another --uri",
    "out-of-date database schema": "the database is of another MLflow: `mlflow db upgrade` it, or move it away and "
    "import again",
    "Can't locate revision": "the database is of a later MLflow: move it away and import again, nothing is lost",
    "file is not a database": "file is not a database: move the file away and import again, nothing is lost",
    "is malformed": "the database is damaged: move the file away and import again, nothing is lost",
}
"""What helps against errors of MLflow and SQLite, by words of theirs."""


@contextmanager
def _opened(uri: str) -> Iterator[tuple[MlflowClient, str | None]]:
    """Yield a client and the address of the folder for artifacts, None for the server's own.

    A SQLite database is made here, once, before anyone writes to it, and held against a second import. In WAL
    mode the user interface can read while this writes. Artifacts lie beside the database; where the two were moved
    together, their addresses are mended.
    """
    path = _database(uri)
    if path is None:
        # MLflow's own seven attempts would take minutes to say that there is no server.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
        yield MlflowClient(uri), None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_name(f"{path.name}.lock"), "imports into this database"):
        connection = sqlite3.connect(path)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()
        client, root = MlflowClient(uri), artifact_root(path)
        try:
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("BEGIN IMMEDIATE")  # MLflow would wait long for a program that is writing
                mend_addresses(connection, root)
            yield client, root
        finally:
            # MLflow has made the addresses of new experiments and their runs absolute.
            with closing(sqlite3.connect(path)) as connection, connection:
                mend_addresses(connection, root)


def artifact_root(database: Path) -> str:
    """The address of the folder for artifacts beside a database, relative where the database's own is.

    `mlflow ui`, which is given the same URI, resolves both from where it is started: a checkout, or a folder of results
    that is moved or copied, has its figures there, and never shows those that it was copied from.
    """
    folder = Path(os.path.normpath(database.parent / ARTIFACTS))
    if folder.is_absolute() or os.pardir in folder.parts:
        return folder.absolute().as_uri()
    return quote(f"./{folder.as_posix()}")


def mend_addresses(connection: sqlite3.Connection, root: str) -> None:
    """Let artifacts be found at `root`, wherever they were when the database was written."""
    for table, column in (("experiments", "artifact_location"), ("runs", "artifact_uri")):
        for (old,) in connection.execute(f"SELECT DISTINCT {column} FROM {table}").fetchall():
            before, mark, inner = (old or "").rpartition(f"/{ARTIFACTS}/")
            if mark and f"{before}/{ARTIFACTS}" != root:
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (f"{root}/{inner}", old))


class _StudyImport:
    """The import of one study's trials."""

    def __init__(self, client: MlflowClient, run: ResolvedRun, study: Study, store: Path, root: str | None) -> None:
        self.client = client
        self.study = study
        self.store = store
        self.tags = {
            "plumbline.study.experiments": study.study,
            "plumbline.preset": run.config.preset,
            "plumbline.data": run.config.data,
        }
        self.preset = run.config.preset
        self.experiments = [name for name, one in run.experiments.items() if one.study is study]
        artifacts = f"{root}/{study.study}" if root else None
        self.experiment = experiment_id(client, study.study, artifacts, f"{study.title}\n\n{study.citation}")
        self.places = [self.experiment]
        live = None if root else client.get_experiment_by_name(live_experiment())
        if live is not None and live.experiment_id != self.experiment:
            self.places.append(live.experiment_id)

    def add(self, wanted: Mapping[str, Finished]) -> int:
        """Import what is not there yet, file by file, and return how many trials that were."""
        there = self._there()
        missing = []
        for key, trial in wanted.items():
            runs = there.get(key, [])
            expected = outcome(trial.error)
            whole = [run for run in runs if (run.info.status, run.data.tags.get(ERROR)) == expected]
            for run in runs:
                if run not in whole:
                    self.client.delete_run(run.info.run_id)
            if whole:
                self._extend_tags(whole[0], trial)
            else:
                missing.append(trial)
        for path, trials in groupby(missing, key=lambda trial: trial.path):
            table = records.read_table(path, ["key", "status", *ROWS.names])
            table = table.filter(compute.equal(table["status"], "ok"))
            metrics = trial_metrics(table.select(ROWS.names)) if len(table) else {}
            for trial in trials:
                rows = table.filter(compute.equal(table["key"], trial.key))
                self._import(trial, rows.select(["iteration", "evaluation", MARK]), metrics.get(trial.spec.seed, {}))
        return len(missing)

    def _there(self) -> dict[str, list[Run]]:
        """Return all runs of trials by key: one search for all of them, not one a trial."""
        runs: dict[str, list[Run]] = {}
        token = None
        while True:
            page = self.client.search_runs(self.places, f"tags.`{TRIAL}` LIKE '%'", max_results=PAGE, page_token=token)
            for run in page:
                runs.setdefault(run.data.tags[TRIAL], []).append(run)
            token = page.token
            if not token:
                return runs

    def _plan_tags(self, trial: Finished) -> dict[str, str]:
        """Return the tags of a trial that its run configuration gives: study, preset, data and experiments."""
        return {**self.tags, "plumbline.experiment": ",".join(trial.experiments)}

    def _extend_tags(self, run: Run, trial: Finished) -> None:
        """Add to the run of a trial what it is part of now: another experiment or preset may share it."""
        for name, value in self._plan_tags(trial).items():
            before = run.data.tags.get(name)
            known = before.split(",") if before else []
            joined = ",".join(dict.fromkeys([*known, *value.split(",")]))
            if joined != before:
                self.client.set_tag(run.info.run_id, name, joined)

    def _import(self, trial: Finished, table: arrow.Table, metrics: Mapping[str, pd.Series]) -> None:
        """Make the run of a trial; its status comes last, because it says that the run is whole."""
        folder = TrialFolder(self.store, trial.key)
        origin = folder.provenance() if folder.provenance_path.is_file() else {}
        rounds = table.to_pandas().groupby("iteration").last()
        seconds = rounds[MARK].fillna(0.0)
        end = (folder.records_path if folder.done else trial.path).stat().st_mtime
        begin = end - float(seconds.sum())
        status, error = outcome(trial.error)
        tags = run_tags(trial.key, trial.spec, origin) | self._plan_tags(trial)
        if error is not None:
            tags[ERROR] = error
        created = self.client.create_run(self.experiment, milliseconds(begin), tags, title(trial.spec))
        run = created.info.run_id
        log_params(self.client, run, run_params(trial.spec))
        ends = begin + seconds.cumsum()
        logged = [
            entry
            for iteration in sorted(logged_rounds(trial.spec.budget.rounds) & {*rounds.index})
            for entry in round_metrics(
                metrics,
                iteration,
                int(rounds["evaluation"][iteration]) + 1,
                milliseconds(ends[iteration]),
                seconds[iteration],
            )
        ]
        log_metrics(self.client, run, logged)
        self.client.set_terminated(run, status, milliseconds(end))

    def summarise(self, wanted: Mapping[str, Finished], folder: Path) -> None:
        """Write the preset's summary anew, into the run that holds it if there is one: its address stays.

        Args:
            wanted: the trials of the study.
            folder: results of the preset, to attach what is there of the study's experiments.
        """
        preset = self.preset
        found = self.client.search_runs([self.experiment], f"tags.`{SUMMARY}` = '{preset}'", max_results=1)
        if found:
            run = found[0]
            self.client.update_run(run.info.run_id, status="RUNNING")
        else:
            note = f"{self.study.title}: the figures and tables of preset `{preset}`."
            tags = {**self.tags, SUMMARY: preset, "mlflow.note.content": note}
            run = self.client.create_run(self.experiment, tags=tags, run_name=f"summary of {preset}")
        now = milliseconds(time.time())
        failures = sum(trial.error is not None for trial in wanted.values())
        metrics = [Metric("trials", len(wanted), now, 0), Metric("failures", failures, now, 0)]
        experiments = RunTag("plumbline.experiment", ",".join(self.experiments))
        self.client.log_batch(run.info.run_id, metrics=metrics, tags=[experiments])
        # Not the client's own calls: it remembers where a run's artifacts were, in this process, before a move.
        repository = get_artifact_repository(run.info.artifact_uri, tracking_uri=self.client.tracking_uri)
        for entry in repository.list_artifacts():
            repository.delete_artifacts(entry.path)
        for path in attachments(folder, self.experiments):
            inner = path.parent.relative_to(folder).as_posix()
            repository.log_artifact(str(path), None if inner == "." else inner)
        self.client.set_terminated(run.info.run_id, "FINISHED")


def attachments(folder: Path, experiments: Sequence[str]) -> list[Path]:
    """Return the figures and tables of `experiments` in a folder of results, and its claims and report."""
    outputs = [*folder.glob("figures/*.png"), *folder.glob("figures/*.svg"), *folder.glob("tables/*.csv")]
    chosen = sorted(path for path in outputs if path.name.partition(".")[0] in experiments)
    return chosen + [path for path in (folder / "claims.csv", folder / "report.html") if path.is_file()]
