"""Trained models -> MLflow: a run a model, with the curves of its training."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Metric

from plumbline.data.models import ModelEntry
from plumbline.models.learned.arrays import read_curves
from plumbline.study.plan import Plan
from plumbline.tracking.runs import experiment_id, log_metrics, log_params, milliseconds, model_params

MODEL = "plumbline.model"
EXPERIMENT = "models"
"""The MLflow experiment of all studies' models: they may share some."""


def trained_models(plan: Plan, data: Path) -> dict[str, Path]:
    """Return the files of the models that trials of the plan read, by name; of those that are there."""
    names = {name for _, experiment, _ in plan.experiments() for name in plan.inputs(experiment)} & plan.models.keys()
    paths = {name: data / "models" / f"{name}.npz" for name in sorted(names)}
    return {name: path for name, path in paths.items() if path.is_file()}


def import_models(client: MlflowClient, plan: Plan, data: Path, root: str | None) -> str | None:
    """Import the training curves of the plan's models; what is there already, whole, stays as it is.

    Args:
        client: of the store.
        plan: says which models there are, and which of them trials read.
        data: the folder of built inputs.
        root: URI of the folder of artifacts; None for the server's own.

    Returns:
        The id of their MLflow experiment; None where no model has curves.

    Raises:
        PlumblineError: a file that is corrupt.
    """
    curves = {path: rows for path in trained_models(plan, data).values() if (rows := read_curves(path))}
    if not curves:
        return None
    experiment = experiment_id(client, EXPERIMENT, f"{root}/{EXPERIMENT}" if root else None)
    for path, rows in curves.items():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        there = client.search_runs([experiment], f"tags.`{MODEL}` = '{digest}'")
        for run in there:
            if run.info.status != "FINISHED":
                client.delete_run(run.info.run_id)
        if not any(run.info.status == "FINISHED" for run in there):
            _import(client, experiment, path, digest, plan.models[path.stem], rows)
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
