"""Trained models -> MLflow: a run a model, with the curves of its training."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Metric

from plumbline.data.models import ModelEntry
from plumbline.models.learned.arrays import read_curves
from plumbline.study.resolved import ResolvedRun
from plumbline.tracking.runs import experiment_id, log_metrics, log_params, milliseconds, model_params

MODEL = "plumbline.model"
EXPERIMENT = "models"
"""The MLflow experiment of all studies' models: they may share some."""


def trained_models(run: ResolvedRun, data: Path) -> dict[str, Path]:
    """Return the files of the models that trials of the run read, by name; of those that are trained."""
    paths = {name: data / "models" / f"{name}.npz" for name in sorted(run.inputs & run.models.keys())}
    return {name: path for name, path in paths.items() if path.is_file()}


def import_models(client: MlflowClient, run: ResolvedRun, data: Path, root: str | None) -> str | None:
    """Import the training curves of the run's models; what is there already, whole, stays as it is.

    Args:
        client: of the store.
        run: its models, and the trials that read them.
        data: the folder of built inputs.
        root: URI of the folder of artifacts; None for the server's own.

    Returns:
        The id of their MLflow experiment; None where no model has curves.

    Raises:
        PlumblineError: a file that is corrupt.
    """
    curves = {path: rows for path in trained_models(run, data).values() if (rows := read_curves(path))}
    if not curves:
        return None
    experiment = experiment_id(client, EXPERIMENT, f"{root}/{EXPERIMENT}" if root else None)
    for path, rows in curves.items():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        there = client.search_runs([experiment], f"tags.`{MODEL}` = '{digest}'")
        for made in there:
            if made.info.status != "FINISHED":
                client.delete_run(made.info.run_id)
        if not any(made.info.status == "FINISHED" for made in there):
            _import(client, experiment, path, digest, run.models[path.stem], rows)
    return experiment


def _import(
    client: MlflowClient,
    experiment: str,
    path: Path,
    digest: str,
    entry: ModelEntry,
    curves: Iterable[dict[str, float]],
) -> None:
    """Make the run of a model; its status comes last, because it says that the run is whole."""
    end = milliseconds(path.stat().st_mtime)  # curves hold no times: the same training is the same file
    run = client.create_run(experiment, end, {MODEL: digest}, path.stem).info.run_id
    log_params(client, run, model_params(entry))
    metrics = [
        Metric(name, float(value), end, int(row["epoch"]))
        for row in curves
        for name, value in row.items()
        if name != "epoch"
    ]
    log_metrics(client, run, metrics)
    client.set_terminated(run, "FINISHED", end)
