"""What is said of a trial in MLflow, whoever says it: name, parameters, tags and metrics of its run."""

import json
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as arrow
from mlflow import MlflowClient
from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException

from plumbline.data.models import ModelEntry
from plumbline.metrics.frames import frame_of, keys
from plumbline.metrics.registry import METRICS, NOTE, Kind, columns_of, find_metric, metric
from plumbline.registry.default_options import with_defaults
from plumbline.store import records
from plumbline.store.spec import TrialSpec

TRIAL = "plumbline.trial"
"""The tag with the key of a trial."""
ERROR = "plumbline.error"
NOTE_TAG = "mlflow.note.content"
"""The tag with what the page of a run or an experiment says of it."""
KIND, TASK, METHOD = "kind", "task", "method"
"""Tags that runs are chosen and grouped by. Means have no `method`: in a group they would count as one more seed."""

MARK = "round_seconds"
"""The metric that every logged round has: where it is, the round is whole."""

STEPS = 100
"""Rounds of a trial that are logged at most: a chart of a few hundred pixels shows no more, and 20,000 trials of 50
rounds have a database of four gigabytes already."""

SIGNED = ("best_y", "best_f", "best_query", "incumbent_f", "predicted_mean")
"""Metrics in the sign of the objective, which is maximised: figures that minimise turn them round."""

NOTES, ENDS, SYSTEM = "notes/", "interval/", "system/"
"""What is before the slash is a section of charts, which can be folded: methods note many numbers. Those of the system
have a page of their own."""

MAX_METRICS, MAX_PARAMS, MAX_KEY, MAX_PARAM, MAX_TAG = 1000, 100, 250, 6000, 8000
"""MLflow's limits: metrics and params a request; characters of a name, a param's value and a tag's value."""


def streamed() -> list[str]:
    """Return the metrics of the registry that MLflow gets; `MARK` is added to each round by itself."""
    return [metric.name for metric in METRICS.values() if metric.streamed and metric.name != MARK]


def shown_as(metric: str, minimised: bool) -> tuple[str, int]:
    """Return the name of a metric in MLflow and its sign, those of a figure that minimises or of one that does not.

    `best_f` is `least_f` where the figure minimises, with the other sign; `notes.width` is in the section `notes`.
    """
    if metric.startswith(NOTE):
        return f"{NOTES}{_name(metric.removeprefix(NOTE))}"[:MAX_KEY], 1
    if not minimised or metric not in SIGNED:
        return _name(metric)[:MAX_KEY], 1
    return (f"least_{metric.removeprefix('best_')}" if metric.startswith("best_") else f"minus_{metric}"), -1


def run_name(spec: TrialSpec) -> str:
    """Return the name of a trial's run: method and seed first, which are what is seen where it is cut."""
    return f"{spec.method.label} s{spec.seed} {spec.task}"


def run_params(spec: TrialSpec) -> dict[str, str]:
    """Return `task`, `method`, `seed`, and `problem.*`, `method.*` and `budget.*` with all defaults spelt out.

    Raises:
        PlumblineError: a problem or a method that is not registered.
    """
    problem = with_defaults("problem", spec.problem.name, spec.problem.options)
    method = with_defaults("method", spec.method.name, spec.method.options)
    asked = {
        "task": spec.task,
        "method": spec.method.label,
        "seed": spec.seed,
    }
    options = {
        "problem": {**problem, "name": spec.problem.name},
        "method": {**method, "name": spec.method.name},
        "budget": spec.budget.model_dump(mode="json"),
    }
    flat = (*_flatten(asked), *_flatten(options))
    return {_name(path)[:MAX_KEY]: clip(value, MAX_PARAM) for path, value in flat}


def model_params(entry: ModelEntry) -> dict[str, str]:
    """Return `trainer`, `seed` and `options.*` of a trained model, with all defaults spelt out.

    Raises:
        PlumblineError: a trainer that is not registered.
    """
    options = with_defaults("trainer", entry.trainer, entry.options)
    flat = _flatten({"trainer": entry.trainer, "seed": entry.seed, "options": options})
    return {_name(path)[:MAX_KEY]: clip(value, MAX_PARAM) for path, value in flat}


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield (a.b.c, value) of nested options; texts as they are, other values as JSON."""
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value)


def run_tags(key: str, spec: TrialSpec, origin: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags that say which trial a run is, and of which code, where its provenance tells."""
    tags = {METHOD: spec.method.label, TASK: spec.task, KIND: "trial", TRIAL: key}
    if origin.get("commit"):
        tags["plumbline.commit"] = origin["commit"] + ("-dirty" if origin.get("dirty") else "")
    return tags


def logged_rounds(rounds: int) -> frozenset[int]:
    """Return the rounds from 0 (the initial design) to `rounds` that are logged: all, or `STEPS` evenly spaced ones.

    They follow from the budget alone, so that a stream and an import of a trial log the same; first and last are in.
    """
    return frozenset(np.linspace(0, rounds, min(rounds + 1, STEPS)).round().astype(int).tolist())


def rows_of(names: Iterable[str]) -> arrow.Schema:
    """Return the columns of a trial's rows that metrics are computed from."""
    columns = (*columns_of(names), "notes")
    return arrow.schema(
        [
            *(records.RECORD.field(name) for name in ("seed", "iteration", "evaluation")),
            *(field for field in records.RECORD if field.name in columns),
            *((name, arrow.float64()) for name in records.SECONDS),
        ]
    )


ROWS = rows_of(streamed())
"""What is read of the rows of a trial while it runs."""


def trial_metrics(
    table: arrow.Table, names: Sequence[str] = (), kinds: Collection[Kind] = ("query", "running", "round")
) -> dict[str, pd.DataFrame]:
    """Return the metrics of trials that MLflow draws as curves, by name.

    Many trials take hardly longer than one.

    Args:
        table: rows of trials of one method on one task from their beginning, with the columns of `rows_of(names)`.
        names: of metrics, those of `streamed` where none are named; notes are added.
        kinds: of metrics.

    Returns:
        One row per seed and one column per round, as `as_recorded` has them, all of the same shape. What is not finite
        is NaN, and metrics without a finite value are left out: unknown regrets, diagnostics without a model,
        and the widths of sets that are the whole line.
    """
    rows = frame_of(table)
    wanted = [*(names or streamed()), *(f"{NOTE}{note}" for note in keys(rows["notes"]))]
    kind_of = {name: find_metric(name).kind for name in wanted}
    found: dict[str, pd.DataFrame] = {}
    # One pass for the metrics that are averaged over a round, one for those that its last evaluation has.
    for averaged in (True, False):
        chosen = [name for name, kind in kind_of.items() if kind in kinds and (kind == "query") == averaged]
        groups = pd.DataFrame({name: metric(rows, name) for name in chosen}, index=rows.index).groupby(
            [rows["seed"], rows["iteration"]]
        )
        wide = (groups.mean() if averaged else groups.last()).unstack()
        for name in chosen:
            values = pd.DataFrame(wide[name])
            finite = values.abs() < np.inf
            if finite.to_numpy().any():
                found[name] = values.where(finite)
    return {name: found[name] for name in wanted if name in found}


def round_metrics(
    metrics: Mapping[str, pd.DataFrame], seed: int, iteration: int, evaluations: int, timestamp: int, seconds: float
) -> list[Metric]:
    """Return the metrics of one round, at the step of the evaluations so far.

    Args:
        metrics: of trials, as `trial_metrics` gives them.
        seed: of the trial.
        iteration: the round.
        evaluations: so far.
        timestamp: when the round ended, in milliseconds since 1970.
        seconds: that it took.
    """
    values = {shown_as(name, False)[0]: float(table.loc[seed].to_dict()[iteration]) for name, table in metrics.items()}
    values[MARK] = seconds  # last, so that where it is, the round is whole; the initial design has it too
    return [Metric(name, value, timestamp, evaluations) for name, value in values.items() if math.isfinite(value)]


def outcome(error: str | None) -> tuple[str, str | None]:
    """Return the status and the error tag of a trial that ended with `error`, or well."""
    return ("FINISHED", None) if error is None else ("FAILED", clip(error, MAX_TAG))


def _name(text: str) -> str:
    """Return `text` with nothing in it that MLflow does not allow in a name."""
    return re.sub(r"[^\w.\- ]+", "-", text)


def clip(text: str, length: int) -> str:
    """Return `text`, shortened to `length` characters where it is longer."""
    return text if len(text) <= length else text[: length - 3] + "..."


def log_metrics(client: MlflowClient, run: str, metrics: Sequence[Metric]) -> None:
    """Log metrics of a run, in as many requests as MLflow wants."""
    for start in range(0, len(metrics), MAX_METRICS):
        client.log_batch(run, metrics=metrics[start : start + MAX_METRICS])


def log_params(client: MlflowClient, run: str, params: Mapping[str, str]) -> None:
    """Log parameters of a run, in as many requests as MLflow wants."""
    entries = [Param(name, value) for name, value in params.items()]
    for start in range(0, len(entries), MAX_PARAMS):
        client.log_batch(run, params=entries[start : start + MAX_PARAMS])


def experiment_id(client: MlflowClient, name: str, artifacts: str | None = None, note: str | None = None) -> str:
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
            tags = {NOTE_TAG: note} if note else {}
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


def milliseconds(seconds: float) -> int:
    """Return seconds in the unit of MLflow's times."""
    return round(1000 * seconds)
