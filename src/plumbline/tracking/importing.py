"""Finished trials -> MLflow, by the only writer of its database."""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from filelock import FileLock
from mlflow import MlflowClient
from mlflow.entities import Metric, Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

from plumbline import records
from plumbline.config import Plan
from plumbline.errors import PlumblineError
from plumbline.observers import title
from plumbline.records import Row
from plumbline.specs import Chunk, TrialSpec
from plumbline.store import TrialFolder
from plumbline.study import Study
from plumbline.tracking.runs import (
    ERROR,
    TRIAL,
    RunningMisses,
    clip,
    experiment_id,
    level_names,
    live_experiment,
    log_metrics,
    log_params,
    milliseconds,
    outcome,
    round_metrics,
    run_params,
    run_tags,
)

SUMMARY = "plumbline.summary"

PAGE = 1000
"""Runs asked for at a time."""


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


def finished_trials(plan: Plan, paths: Sequence[Path]) -> tuple[dict[str, dict[str, Finished]], list[Path]]:
    """Return the trials in files of records, by study and key, and the files that are no jobs of the plan.

    Args:
        plan: says which experiments a job belongs to.
        paths: files of records, each called `<chunk id>.parquet`.

    Raises:
        PlumblineError: a file that is not there or corrupt.
    """
    jobs: dict[str, list[tuple[Study, str, Chunk]]] = {}
    trials: dict[str, dict[str, Finished]] = {}
    for study, name, _ in plan.experiments():
        trials.setdefault(study.study, {})
        for chunk in plan.chunks(name):
            jobs.setdefault(chunk.id, []).append((study, name, chunk))
    for path in paths:
        if path.stem not in jobs:
            continue
        ended = _ends(path)
        for study, name, chunk in jobs[path.stem]:
            found = trials[study.study]
            for key, (seed, error) in ended.items():
                trial = found.setdefault(key, Finished(key, chunk.spec.with_seed(seed), path, error))
                if name not in trial.experiments:
                    trial.experiments.append(name)
    return trials, [path for path in paths if path.stem not in jobs]


def _ends(path: Path) -> dict[str, tuple[int, str | None]]:
    """Return seed and error of each trial in a file of records."""
    table = records.read_table(path).select(["key", "seed", "status", "error"])
    ends: dict[str, tuple[int, str | None]] = {}
    for row in table.to_pylist():
        ends[row["key"]] = (row["seed"], row["error"] if row["status"] == "error" else None)
    return ends


def import_trials(plan: Plan, chunks: Sequence[Path], artifacts: Path, store: Path, uri: str) -> str:
    """Import finished trials into MLflow; what is there already, whole, stays as it is.

    One MLflow experiment a study, one run a trial, and one run a preset that sums the study up, with its
    figures and tables. A run that was left unfinished by an import or a stream that broke off is made anew.

    Args:
        plan: which experiments there are, and at which preset.
        chunks: files of records, each called `<chunk id>.parquet`.
        artifacts: the folder of the preset's results: `figures/`, `tables/`, `claims.csv`, `report.html`.
        store: the folder of all trials.
        uri: `sqlite:///` and a path, where this must be the only writer; or `http(s)://` of a server.

    Returns:
        One line that says what was imported and how to look at it.

    Raises:
        PlumblineError: records that cannot be read, a database that is none or of another version, a server
            that does not answer.
    """
    trials, strangers = finished_trials(plan, chunks)
    new = old = failed = 0
    try:
        with _opened(uri) as (client, root):
            for name, wanted in trials.items():
                study = _StudyImport(client, plan, plan.studies[name], store, root)
                imported = study.add(wanted)
                study.summarise(wanted, artifacts)
                new, old = new + imported, old + len(wanted) - imported
                failed += sum(trial.error is not None for trial in wanted.values())
    except (MlflowException, sqlite3.DatabaseError) as error:
        raise PlumblineError(f"MLflow at {uri}: {_remedy(error)}") from error
    counts = f"{new} trials imported, {old} there already, {failed} of all failed"
    ignored = f", {len(strangers)} files of other configurations left out" if strangers else ""
    look = f"mlflow ui --backend-store-uri {uri}" if _database(uri) else uri
    return f"{counts}{ignored}; look at them, under Model training: {look}"


def _database(uri: str) -> Path | None:
    """Return the file of a SQLite URI, None for other URIs."""
    return Path(uri.removeprefix("sqlite:///")) if uri.startswith("sqlite:///") else None


def _remedy(error: Exception) -> str:
    """Return one line for what MLflow or SQLite raised."""
    text = " ".join(str(error).split())
    if isinstance(error, sqlite3.DatabaseError):
        return f"{text}: move the file away and import again, nothing is lost"
    if "out-of-date database schema" in text:
        return "the database is of another MLflow: `mlflow db upgrade` it, or move it away and import again"
    return clip(text, 300)


@contextmanager
def _opened(uri: str) -> Iterator[tuple[MlflowClient, str | None]]:
    """Yield a client and the URI of the folder for artifacts, None for the server's own.

    A SQLite database is made here, once, before anyone writes to it, and held against a second import. In WAL
    mode the user interface can read while this writes. Artifacts lie beside the database, wherever the
    command was started.
    """
    path = _database(uri)
    if path is None:
        # MLflow's own seven attempts would take minutes to say that there is no server.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
        yield MlflowClient(uri), None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f"{path.name}.lock")):
        connection = sqlite3.connect(path)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()
        yield MlflowClient(uri), (path.parent.resolve() / "mlartifacts").as_uri()


class _StudyImport:
    """The import of one study's trials."""

    def __init__(self, client: MlflowClient, plan: Plan, study: Study, store: Path, root: str | None) -> None:
        self.client = client
        self.study = study
        self.store = store
        self.tags = {
            "plumbline.study": study.study,
            "plumbline.preset": plan.config.preset,
            "plumbline.data": plan.config.data,
        }
        self.preset = plan.config.preset
        self.experiments = [name for other, name, _ in plan.experiments() if other is study]
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
            rows = records.read_table(path).to_pylist(maps_as_pydicts="strict")
            by_key = {key: list(group) for key, group in groupby(rows, key=lambda row: row["key"])}
            for trial in trials:
                self._import(trial, by_key[trial.key])
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
        """Return what the plan knows of a trial and the trial does not."""
        return {**self.tags, "plumbline.experiment": ",".join(trial.experiments)}

    def _extend_tags(self, run: Run, trial: Finished) -> None:
        """Add to the run of a trial what it is part of now: another experiment or preset may share it."""
        for name, value in self._plan_tags(trial).items():
            before = run.data.tags.get(name)
            known = before.split(",") if before else []
            joined = ",".join(dict.fromkeys([*known, *value.split(",")]))
            if joined != before:
                self.client.set_tag(run.info.run_id, name, joined)

    def _import(self, trial: Finished, rows: list[Row]) -> None:
        """Make the run of a trial; its status comes last, because it says that the run is whole."""
        folder = TrialFolder(self.store, trial.key)
        origin = folder.provenance() if folder.provenance_path.is_file() else {}
        rounds = [list(group) for _, group in groupby(_good(rows), key=lambda row: row["iteration"])]
        took = sum(_seconds(batch) for batch in rounds)
        end = (folder.records_path if folder.done else trial.path).stat().st_mtime
        status, error = outcome(trial.error)
        tags = run_tags(trial.key, trial.spec, origin) | self._plan_tags(trial)
        if error is not None:
            tags[ERROR] = error
        begin = end - took
        created = self.client.create_run(self.experiment, milliseconds(begin), tags, title(trial.spec))
        run = created.info.run_id
        log_params(self.client, run, run_params(trial.spec))
        metrics, now, levels, misses = [], begin, level_names(trial.spec), RunningMisses()
        for batch in rounds:
            now += _seconds(batch)
            metrics += round_metrics(batch, batch[-1], levels, milliseconds(now), misses)
        log_metrics(self.client, run, metrics)
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
            repository = get_artifact_repository(run.info.artifact_uri, tracking_uri=self.client.tracking_uri)
            for entry in self.client.list_artifacts(run.info.run_id):
                repository.delete_artifacts(entry.path)
        else:
            note = f"{self.study.title}: the figures and tables of preset `{preset}`."
            tags = {**self.tags, SUMMARY: preset, "mlflow.note.content": note}
            run = self.client.create_run(self.experiment, tags=tags, run_name=f"summary of {preset}")
        now = milliseconds(time.time())
        failures = sum(trial.error is not None for trial in wanted.values())
        metrics = [Metric("trials", len(wanted), now, 0), Metric("failures", failures, now, 0)]
        experiments = RunTag("plumbline.experiment", ",".join(self.experiments))
        self.client.log_batch(run.info.run_id, metrics=metrics, tags=[experiments])
        for path in attachments(folder, self.experiments):
            inner = path.parent.relative_to(folder).as_posix()
            self.client.log_artifact(run.info.run_id, str(path), None if inner == "." else inner)
        self.client.set_terminated(run.info.run_id, "FINISHED")


def attachments(folder: Path, experiments: Sequence[str]) -> list[Path]:
    """Return the figures and tables of `experiments` in a folder of results, and its claims and report."""
    outputs = [*folder.glob("figures/*.png"), *folder.glob("figures/*.svg"), *folder.glob("tables/*.csv")]
    chosen = sorted(path for path in outputs if path.name.partition(".")[0] in experiments)
    return chosen + [path for path in (folder / "claims.csv", folder / "report.html") if path.is_file()]


def _good(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["status"] == "ok"]


def _seconds(batch: Sequence[Row]) -> float:
    """Return how long a round took, 0 where that is not known."""
    return batch[-1].get("round_seconds") or 0.0
