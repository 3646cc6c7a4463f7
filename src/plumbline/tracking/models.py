"""Trained models -> MLflow: a run a model, with the curves of its training."""

from collections.abc import Iterable
from pathlib import Path

from plumbline.core.files import digest_of
from plumbline.data.models import ModelEntry
from plumbline.models.learned.arrays import read_curves
from plumbline.study.resolved import ResolvedRun
from plumbline.tracking.addresses import runs_page
from plumbline.tracking.drafts import Draft, Point
from plumbline.tracking.runs import KIND, milliseconds, model_params
from plumbline.tracking.stores import Store, missing

EXPERIMENT = "models"
"""The MLflow experiment of all studies' models: they may share some."""


def trained_models(run: ResolvedRun, data: Path) -> dict[str, Path]:
    """Return the files of the models that trials of the run read, by name; of those that are trained."""
    paths = {name: data / "models" / f"{name}.npz" for name in sorted(run.inputs & run.models.keys())}
    return {name: path for name, path in paths.items() if path.is_file()}


def import_models(kept: Store, run: ResolvedRun, data: Path) -> str:
    """Import the training curves of the run's models; what is there already, whole, stays as it is.

    Args:
        kept: the store.
        run: its models, and the trials that read them.
        data: the folder of built inputs.

    Returns:
        The address of their MLflow experiment; empty where no model has curves.

    Raises:
        PlumblineError: a file that is corrupt.
    """
    curves = {path: rows for path in trained_models(run, data).values() if (rows := read_curves(path))}
    if not curves:
        return ""
    experiment = kept.experiment(EXPERIMENT, EXPERIMENT)
    made = {
        draft.made_of: draft for draft in (_draft(path, run.models[path.stem], rows) for path, rows in curves.items())
    }
    others = {known.made_of for known in kept.runs(experiment) if known.whole}  # of other trainings, or other runs
    lacking = missing(kept, experiment, made.keys() | others)
    kept.add(experiment, [made[digest] for digest in made if digest in lacking])
    return runs_page(experiment)


def _draft(path: Path, entry: ModelEntry, curves: Iterable[dict[str, float]]) -> Draft:
    """The draft of a model's run: curves hold no times, the same training is the same file."""
    end = milliseconds(path.stat().st_mtime)
    points = [
        Point(name, float(value), end, int(row["epoch"]))
        for row in curves
        for name, value in row.items()
        if name != "epoch"
    ]
    return Draft(digest_of(path)[:16], path.stem, {KIND: "model"}, model_params(entry), points, end, end)
