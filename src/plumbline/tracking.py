"""Records -> MLflow: the files are the truth, and MLflow is a window on them.

`import_trials` writes finished trials to a store, as its only writer: of many processes that open a new
SQLite database at once, most die in its schema migration. `LiveRun` streams a trial to a tracking server
while it runs. Both make the same run of the same trial, found again by its key in the tag `plumbline.trial`.
"""

import json
import math
import os
import re
import sqlite3
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

# How a study is run is nobody else's business, and jobs on a cluster often have no way out. MLflow reads this
# when it is imported.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
# Two lines on stdout for every run that ends are too many for an import of a thousand.
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")

from filelock import FileLock
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

from plumbline import records
from plumbline.catalogue import catalogue
from plumbline.config import Plan
from plumbline.errors import PlumblineError
from plumbline.observers import title
from plumbline.provenance import provenance
from plumbline.records import Row
from plumbline.specs import Chunk, Json, TrialSpec
from plumbline.store import TrialFolder
from plumbline.study import Study

TRIAL = "plumbline.trial"
SUMMARY = "plumbline.summary"
ERROR = "plumbline.error"

SCALARS = ("best_y", "best_f", "regret", "incumbent_regret", "calibration_score", "nll", "crps", "pit")
"""Columns of a record that become metrics as they are."""

LEVELS = ("covered", "f_covered", "width", "holdout_coverage", "holdout_width", "optimum_width")
"""Columns that hold one entry a miscoverage level."""

ITERATION = "iteration"
"""The round that an evaluation was of: the last metric of a row, so that where it is, the row is whole."""

MAX_METRICS, MAX_PARAMS, MAX_KEY, MAX_PARAM, MAX_TAG = 1000, 100, 250, 6000, 8000
"""MLflow's limits: metrics and params a request; characters of a name, a param's value and a tag's value."""

PAGE = 1000
"""Runs asked for at a time."""


# What both writers say of a trial.


def run_params(spec: TrialSpec) -> dict[str, str]:
    """Return `problem.*`, `method.*` and `budget.*` of a trial, with the defaults of all options spelt out.

    Raises:
        PlumblineError: a problem or a method that is not registered.
    """
    problem = resolve(spec.problem.options, catalogue().find("problem", spec.problem.name).options)
    method = resolve(spec.method.options, catalogue().find("method", spec.method.name).options)
    asked = {
        "problem": {**problem, "name": spec.problem.name},
        "method": {**method, "name": spec.method.name},
        "budget": spec.budget.model_dump(mode="json"),
    }
    return {_name(path)[:MAX_KEY]: _clip(value, MAX_PARAM) for path, value in _flatten(asked)}


def resolve(options: Mapping[str, Any], schema: Json) -> Json:
    """Return `options` with the defaults of their JSON schema filled in, those of nested options too.

    The schema serves where the options' own classes would: reading those means importing torch.
    """
    return _resolve(options, schema, schema.get("$defs", {}))


def _resolve(options: Mapping[str, Any], schema: Json, definitions: Json) -> Json:
    resolved = dict(options)
    for name, entry in schema.get("properties", {}).items():
        if name not in resolved and "default" in entry:
            resolved[name] = entry["default"]
        if isinstance(resolved.get(name), Mapping):
            inner = definitions[entry["$ref"].rpartition("/")[2]] if "$ref" in entry else entry
            resolved[name] = _resolve(resolved[name], inner, definitions)
    return resolved


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield (a.b.c, value) of nested options; texts as they are, other values as JSON."""
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value)


def run_tags(key: str, spec: TrialSpec, origin: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags that say which trial a run is, and of which code, where its provenance tells."""
    tags = {
        TRIAL: key,
        "plumbline.problem": spec.problem.label,
        "plumbline.method": spec.method.label,
        "plumbline.seed": str(spec.seed),
    }
    if origin.get("commit"):
        tags["plumbline.commit"] = origin["commit"] + ("-dirty" if origin.get("dirty") else "")
    return tags


def level_names(spec: TrialSpec) -> list[str]:
    """Return what the miscoverage levels of a trial are called in names of metrics: `0.1`, `1-sqrt-n`."""
    return [re.sub(r"[^\w.]+", "-", str(alpha)).strip("-") for alpha in spec.diagnostics.alphas]


def row_metrics(row: Row, levels: Sequence[str]) -> dict[str, float]:
    """Return what is worth a curve of one row of a record.

    Args:
        row: one evaluation.
        levels: `level_names` of its trial, in the order of the row's own `alpha`.

    Returns:
        Metrics by name. What is not a finite number is left out: unknown regrets, diagnostics of methods
        without a model, and the widths of sets that are the whole line. Names have no slash: the user interface
        would show what is before it, in sections of their own, ahead of the regret.
    """
    values = {name: row.get(name) for name in SCALARS}
    for column in LEVELS:
        entries = zip(levels, row.get(column) or (), strict=False)  # empty where nothing was forecast
        values |= {f"{column}.alpha-{level}": value for level, value in entries}
    values |= {f"notes.{_name(name)}": value for name, value in dict(row.get("notes") or ()).items()}
    known = {name: float(value) for name, value in values.items() if value is not None}
    return {name[:MAX_KEY]: value for name, value in known.items() if math.isfinite(value)}


def round_metrics(
    rows: Sequence[Row], seconds: Mapping[str, float | None], levels: Sequence[str], timestamp: int
) -> list[Metric]:
    """Return the metrics of one round, by step = evaluation; its seconds are at the step of its last.

    Args:
        rows: the round's evaluations, all of them good.
        seconds: how long its parts took, by `records.SECONDS`.
        levels: `level_names` of the trial.
        timestamp: when the round ended, in milliseconds since 1970.
    """
    metrics = []
    for row in rows:
        values = row_metrics(row, levels)
        if row is rows[-1]:
            taken = {name.removesuffix("_seconds"): seconds.get(name) for name in records.SECONDS}
            values |= {f"seconds.{part}": value for part, value in taken.items() if value is not None}
        values[ITERATION] = row["iteration"]
        metrics += [Metric(name, value, timestamp, row["evaluation"]) for name, value in values.items()]
    return metrics


def outcome(error: str | None) -> tuple[str, str | None]:
    """Return the status and the error tag of a trial that ended with `error`, or well."""
    return ("FINISHED", None) if error is None else ("FAILED", _clip(error, MAX_TAG))


def _name(text: str) -> str:
    """Return `text` with nothing in it that MLflow does not allow in a name."""
    return re.sub(r"[^\w.\- ]+", "-", text)


def _clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


def _log_metrics(client: MlflowClient, run: str, metrics: Sequence[Metric]) -> None:
    for start in range(0, len(metrics), MAX_METRICS):
        client.log_batch(run, metrics=metrics[start : start + MAX_METRICS])


def _log_params(client: MlflowClient, run: str, params: Mapping[str, str]) -> None:
    entries = [Param(name, value) for name, value in params.items()]
    for start in range(0, len(entries), MAX_PARAMS):
        client.log_batch(run, params=entries[start : start + MAX_PARAMS])


def _experiment(client: MlflowClient, name: str, artifacts: str | None = None, note: str | None = None) -> str:
    """Return the id of an MLflow experiment, made now or found, brought back if someone deleted it.

    Args:
        client: of the store.
        name: of the experiment.
        artifacts: URI of the folder of its artifacts; None for the server's own.
        note: what the page of the experiment says of it.
    """
    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            tags = {"mlflow.note.content": note} if note else {}
            return client.create_experiment(name, artifact_location=artifacts, tags=tags)
        except MlflowException:
            found = client.get_experiment_by_name(name)  # another job was faster
            if found is None:
                raise
    if found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    return found.experiment_id


def live_experiment() -> str:
    """Return the MLflow experiment that trials stream to: that of MLFLOW_EXPERIMENT_NAME, or `plumbline`."""
    return os.environ.get("MLFLOW_EXPERIMENT_NAME") or "plumbline"


# Importing finished trials.


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
    return _clip(text, 300)


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
        self.experiment = _experiment(client, study.study, artifacts, f"{study.title}\n\n{study.citation}")
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
        created = self.client.create_run(self.experiment, _milliseconds(begin), tags, title(trial.spec))
        run = created.info.run_id
        _log_params(self.client, run, run_params(trial.spec))
        metrics, now, levels = [], begin, level_names(trial.spec)
        for batch in rounds:
            now += _seconds(batch)
            metrics += round_metrics(batch, batch[-1], levels, _milliseconds(now))
        _log_metrics(self.client, run, metrics)
        self.client.set_terminated(run, status, _milliseconds(end))

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
        now = _milliseconds(time.time())
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


def _milliseconds(seconds: float) -> int:
    return round(1000 * seconds)


# Streaming.

HASTE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "5", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
"""Seconds that a trial waits for an answer, and how often it asks again; the environment may say otherwise.

MLflow's own settings are two minutes and seven times.
"""

GRACE, SHARE = 10.0, 0.1
"""What a trial spends on its stream at most: seconds, and a share of the seconds of its rounds."""


class LiveRun:
    """Streams each round of a trial to a tracking server.

    A server that is down or slow costs a trial a few seconds: a failure, or too long a wait, ends the stream
    of that trial, and the first one is warned about. The run stays unfinished: `import_trials` makes it anew.

    Args:
        uri: `http://` or `https://` of the server.
    """

    def __init__(self, uri: str) -> None:
        for name, value in HASTE.items():
            os.environ.setdefault(name, value)
        self.uri = uri
        self.run: str | None = None
        self.warned = False

    @contextmanager
    def _sparing(self) -> Iterator[None]:
        """Keep every failure from the trial, and count the seconds."""
        began = time.perf_counter()
        try:
            yield
            self.waited += time.perf_counter() - began
            if self.waited > GRACE + SHARE * self.computed:
                raise TimeoutError(f"it has cost this trial {self.waited:.0f} s")
        except Exception as error:  # whatever it is, the trial matters more
            self.run = None
            if not self.warned:
                self.warned = True
                reason = _clip(" ".join(str(error).split()), 200)
                warnings.warn(
                    f"MLflow at {self.uri}: {reason}: trials go on without the stream; "
                    "`plumbline track` imports what is missing",
                    stacklevel=3,
                )

    def start(self, key: str, spec: TrialSpec, done: int) -> None:
        """Go on with the trial's run, or make it."""
        self.run, self.waited, self.computed = None, 0.0, 0.0
        self.evaluations, self.whole, self.levels = 0, True, level_names(spec)
        with self._sparing():
            client = self.client = MlflowClient(self.uri)
            experiment = _experiment(client, live_experiment())
            found = client.search_runs([experiment], f"tags.`{TRIAL}` = '{key}'", max_results=1)
            if found:
                self._go_on(found[0])
                return
            tags = run_tags(key, spec, provenance())
            run = client.create_run(experiment, tags=tags, run_name=title(spec)).info.run_id
            _log_params(client, run, run_params(spec))
            self.run = run

    def _go_on(self, run: Run) -> None:
        """Take up a run where it ends: rows that it has are not logged again, they are the same."""
        steps = {entry.step for entry in self.client.get_metric_history(run.info.run_id, ITERATION)}
        self.evaluations = max(steps, default=-1) + 1
        self.whole = len(steps) == self.evaluations
        if run.info.status != "RUNNING":
            self.client.update_run(run.info.run_id, status="RUNNING")
        if ERROR in run.data.tags:
            self.client.delete_tag(run.info.run_id, ERROR)
        self.run = run.info.run_id

    def round(self, rows: list[Row], seconds: dict[str, float]) -> None:
        """Log the metrics of the round."""
        new = [row for row in rows if row["evaluation"] >= self.evaluations] if self.run else []
        if self.run is None or not new:
            return
        self.computed += seconds["round_seconds"]
        with self._sparing():
            self.whole &= new[0]["evaluation"] == self.evaluations
            metrics = round_metrics(new, seconds, self.levels, _milliseconds(time.time()))
            _log_metrics(self.client, self.run, metrics)
            self.evaluations = new[-1]["evaluation"] + 1

    def end(self, error: str | None) -> None:
        """Set the run's status: KILLED where rounds of it went elsewhere, so that an import makes it anew."""
        if self.run is None:
            return
        status, text = outcome(error)
        with self._sparing():
            if text is not None:
                self.client.set_tag(self.run, ERROR, text)
            self.client.set_terminated(self.run, status if self.whole else "KILLED")
        self.run = None
