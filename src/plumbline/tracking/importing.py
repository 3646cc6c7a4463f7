"""Finished trials -> MLflow, by the only writer of its database."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from sqlalchemy.exc import SQLAlchemyError

from plumbline.core.errors import PlumblineError
from plumbline.core.locks import locked
from plumbline.study.resolved import ResolvedExperiment, ResolvedRun
from plumbline.tracking.addresses import ARTIFACTS, FIRST, command_of, database_of, runs_page, server_of, view_address
from plumbline.tracking.database import DatabaseStore, engine_of, knows
from plumbline.tracking.datasets import dataset_inputs
from plumbline.tracking.drafts import Draft
from plumbline.tracking.finished import finished_trials
from plumbline.tracking.models import import_models
from plumbline.tracking.outputs import experiment_outputs, preset_report
from plumbline.tracking.runs import clip, shown_as
from plumbline.tracking.shown import first_metrics
from plumbline.tracking.stores import ClientStore, Store, missing
from plumbline.tracking.trials import TrialRuns
from plumbline.tracking.views import save_tags, view_tags, views_of


def import_trials(
    run: ResolvedRun,
    trials: Path,
    artifacts: Path,
    store: Path,
    uri: str,
    data: Path | None = None,
    jobs: Mapping[str, str] | None = None,
    benchmarks: Path | None = None,
    colours: Callable[[ResolvedExperiment], Mapping[str, str]] = lambda _: {},
) -> str:
    """Import finished trials into MLflow; what is there already, whole, stays as it is.

    One MLflow experiment an experiment at a preset: a run a trial, one with the means of each method on each task, and
    one with the figure and the table. Another has the preset's report and claims. The models that trials read have an
    experiment too, with the curves of their training. What broke off is made anew, and runs of trials that the records
    no longer hold go, as when their code has changed.

    Args:
        run: its experiments, jobs and preset.
        trials: the folder of the jobs' records.
        artifacts: the folder of the preset's results: `figures/`, `tables/`, `claims.csv`, `report.html`.
        store: the folder of all trials.
        uri: `sqlite:///` and a path, where this must be the only writer; or `http(s)://` of a server.
        data: the folder of built inputs; None to leave datasets and models out.
        jobs: names of jobs by the ids of their chunks.
        benchmarks: the folder of the jobs' benchmarks; None to leave out what the machine did.
        colours: of an experiment's methods, as `#rrggbb` by label.

    Returns:
        A line that says what was imported, one that says how to look at it, and an address an experiment.

    Raises:
        PlumblineError: an address that is none, records that cannot be read, a database that is none, of another
            version or held by another program, a server that does not answer.
    """
    database_of(uri)  # a wrong address is said before any records are read
    finished, waiting = finished_trials(run, trials, jobs or {})
    inputs = dataset_inputs(run, data)
    new, pages = 0, []
    try:
        with _opened(uri) as kept:
            for name, ended in finished.items():
                one = run.experiments[name]
                made = TrialRuns(run, one, ended, store, inputs, benchmarks, colours(one))
                page, count = _import(kept, made, experiment_outputs(one, artifacts))
                pages.append((name, page))
                new += count
            if report := preset_report(run.config.preset, artifacts):
                pages.append(("report", _import_one(kept, f"{run.config.preset}/report", report)))
            if data is not None and (models := import_models(kept, run, data)):
                pages.append(("models", models))
            kept.finish()
    except (MlflowException, SQLAlchemyError, sqlite3.DatabaseError) as error:
        raise PlumblineError(f"MLflow at {uri}: {_remedy(error)}") from error
    count = sum(len(ended) for ended in finished.values())
    failed = sum(trial.error is not None for ended in finished.values() for trial in ended)
    counts = f"{new} trials imported, {count - new} there already, {failed} of all failed"
    left = f", {waiting} jobs not run yet" if waiting else ""
    look = f"look at them with `{command_of(uri)}` at" if database_of(uri) else "look at them at"
    return "\n".join([f"{counts}{left}; {look}", *(f"  {name}: {server_of(uri)}/{page}" for name, page in pages)])


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
def _opened(uri: str) -> Iterator[Store]:
    """Yield the store at an address.

    A SQLite database is made here, once, before anyone writes to it, and held against a second import. In WAL mode the
    user interface can read while this writes. Artifacts lie beside the database.
    """
    path = database_of(uri)
    if path is None:
        # MLflow's own seven attempts would take minutes to say that there is no server.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
        yield ClientStore(MlflowClient(uri))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_name(f"{path.name}.lock"), "imports into this database"):
        connection = sqlite3.connect(path)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("BEGIN IMMEDIATE")  # MLflow would wait long for a program that is writing
            connection.rollback()
        finally:
            connection.close()
        client, engine, folder = MlflowClient(uri), engine_of(uri), path.parent / ARTIFACTS
        try:
            yield DatabaseStore(client, engine, folder) if knows(client, engine) else ClientStore(client, folder)
        finally:
            engine.dispose()


def _import(kept: Store, made: TrialRuns, outputs: Draft | None) -> tuple[str, int]:
    """Import the trials of an experiment with its outputs; return the address of a view, and how many were new."""
    experiment = kept.experiment(made.name, made.place)
    wanted = made.wanted() | ({outputs.made_of} if outputs else set())
    lacking = missing(kept, experiment, wanted)
    for drafts in made.drafts(lacking):
        kept.add(experiment, drafts)
    if outputs and outputs.made_of in lacking:
        kept.add(experiment, [outputs])
    present = kept.metrics(experiment)
    labels = {name: shown_as(name, made.minimised)[0] for name in made.core}
    first = first_metrics(made.core, [name for name, label in labels.items() if label in present])
    tasks = list(dict.fromkeys(task for task, _ in made.groups))
    views = views_of(tasks, first, made.minimised) if first else []
    created = kept.client.get_experiment(experiment).creation_time or 0
    save_tags(kept.client, experiment, made.tags | view_tags(experiment, created, views, *made.note))
    page = view_address(experiment, FIRST) if views else runs_page(experiment)
    return page, sum(made_of in lacking for group in made.groups.values() for made_of in group)


def _import_one(kept: Store, name: str, draft: Draft) -> str:
    """Import the only run of an MLflow experiment, and return the address of the experiment."""
    experiment = kept.experiment(name, name)
    if missing(kept, experiment, {draft.made_of}):
        kept.add(experiment, [draft])
    return runs_page(experiment)
