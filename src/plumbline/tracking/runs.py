"""What is said of a trial in MLflow, whoever says it: parameters, tags and metrics of its run."""

import json
import os
import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as arrow
from mlflow import MlflowClient
from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException

from plumbline.data.models import ModelEntry
from plumbline.metrics.frames import frame_of, keys
from plumbline.metrics.registry import METRICS, NOTE, Kind, as_recorded, columns_of, find_metric
from plumbline.registry.catalogue import catalogue
from plumbline.registry.references import Json
from plumbline.store import records
from plumbline.store.spec import TrialSpec

TRIAL = "plumbline.trial"
ERROR = "plumbline.error"

MARK = "round_seconds"
"""The metric that every logged round has: where it is, the round is whole."""

STEPS = 500
"""Rounds of a trial that are logged at most: a browser draws no more, and a database of all would be one of waiting."""

MAX_METRICS, MAX_PARAMS, MAX_KEY, MAX_PARAM, MAX_TAG = 1000, 100, 250, 6000, 8000
"""MLflow's limits: metrics and params a request; characters of a name, a param's value and a tag's value."""


def _streamed() -> list[str]:
    """Return the metrics of the registry that MLflow gets; `MARK` is added to each round by itself."""
    return [metric.name for metric in METRICS.values() if metric.streamed and metric.name != MARK]


def run_params(spec: TrialSpec) -> dict[str, str]:
    """Return `task`, `method`, `seed`, and `problem.*`, `method.*` and `budget.*` with all defaults spelt out.

    Raises:
        PlumblineError: a problem or a method that is not registered.
    """
    problem = resolve(spec.problem.options, catalogue().find("problem", spec.problem.name).options)
    method = resolve(spec.method.options, catalogue().find("method", spec.method.name).options)
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
    options = resolve(entry.options, catalogue().find("trainer", entry.trainer).options)
    flat = _flatten({"trainer": entry.trainer, "seed": entry.seed, "options": options})
    return {_name(path)[:MAX_KEY]: clip(value, MAX_PARAM) for path, value in flat}


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
        "plumbline.task": spec.task,
        "plumbline.method": spec.method.label,
        "plumbline.seed": str(spec.seed),
    }
    if origin.get("commit"):
        tags["plumbline.commit"] = origin["commit"] + ("-dirty" if origin.get("dirty") else "")
    return tags


def logged_rounds(rounds: int) -> frozenset[int]:
    """Return the rounds from 0 (the initial design) to `rounds` that are logged: all, or `STEPS` evenly spaced ones.

    They follow from the budget alone, so that a stream and an import of a trial log the same; first and last are in.
    """
    return frozenset(np.linspace(0, rounds, min(rounds + 1, STEPS)).round().astype(int).tolist())


ROWS = arrow.schema(
    [
        *(records.RECORD.field(name) for name in ("seed", "iteration", "evaluation")),
        *(field for field in records.RECORD if field.name in (*columns_of(_streamed()), "notes")),
        *((name, arrow.float64()) for name in records.SECONDS),
    ]
)
"""What is read of the rows of a trial."""


def trial_metrics(
    table: arrow.Table, kinds: Collection[Kind] = ("query", "running", "round")
) -> dict[Hashable, dict[str, pd.Series]]:
    """Return the metrics of trials that MLflow draws as curves, by seed and name: a value a round, where there is one.

    Many trials take hardly longer than one.

    Args:
        table: rows of trials of one method on one task from their beginning, with the columns of `ROWS`.
        kinds: of metrics.

    Returns:
        Finite numbers only: unknown regrets, diagnostics of methods without a model, and the widths of sets that are
        the whole line are left out. Names have no slash: the user interface would show what is before it, in sections
        of their own, ahead of the regret.
    """
    rows = frame_of(table)
    names = [*_streamed(), *(f"{NOTE}{note}" for note in keys(rows["notes"]))]
    found: dict[Hashable, dict[str, pd.Series]] = {}
    for name in names:
        if find_metric(name).kind not in kinds:
            continue
        for seed, values in as_recorded(rows, name).iterrows():
            if len(finite := values[np.isfinite(values)]):
                found.setdefault(seed, {})[_name(name)[:MAX_KEY]] = finite
    return found


def round_metrics(
    metrics: Mapping[str, pd.Series], iteration: int, evaluations: int, timestamp: int, seconds: float
) -> list[Metric]:
    """Return the metrics of one round, at the step of the evaluations so far.

    Args:
        metrics: of the trial, as `trial_metrics` gives them.
        iteration: the round.
        evaluations: so far.
        timestamp: when the round ended, in milliseconds since 1970.
        seconds: that it took.
    """
    values = {name: float(series[iteration]) for name, series in metrics.items() if iteration in series.index}
    values[MARK] = seconds  # last, so that where it is, the round is whole; the initial design has it too
    return [Metric(name, value, timestamp, evaluations) for name, value in values.items()]


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


def milliseconds(seconds: float) -> int:
    """Return seconds in the unit of MLflow's times."""
    return round(1000 * seconds)
