"""What is said of a trial in MLflow, whoever says it: parameters, tags and metrics of its run."""

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException

from plumbline import records
from plumbline.catalogue import catalogue
from plumbline.records import Row
from plumbline.specs import Json, TrialSpec

TRIAL = "plumbline.trial"
ERROR = "plumbline.error"

SCALARS = ("best_y", "best_f", "regret", "incumbent_regret", "calibration_score", "nll", "crps", "pit")
"""Columns of a record that become metrics as they are."""

LEVELS = ("covered", "f_covered", "width", "holdout_coverage", "holdout_width", "optimum_width")
"""Columns that hold one entry a miscoverage level."""

MISSES = {"covered": "query_miscoverage", "f_covered": "f_miscoverage"}
"""Columns that say whether a query lay in its set, and what the share is called of those so far that did not."""

ITERATION = "iteration"
"""The round that an evaluation was of: the last metric of a row, so that where it is, the row is whole."""

MAX_METRICS, MAX_PARAMS, MAX_KEY, MAX_PARAM, MAX_TAG = 1000, 100, 250, 6000, 8000
"""MLflow's limits: metrics and params a request; characters of a name, a param's value and a tag's value."""


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
    return {_name(path)[:MAX_KEY]: clip(value, MAX_PARAM) for path, value in _flatten(asked)}


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


class RunningMisses:
    """Shares of the queries so far that lay outside of their sets: what a round needs to know of those before it."""

    def __init__(self) -> None:
        self.queries: Counter[str] = Counter()
        self.misses: Counter[str] = Counter()

    def add(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Count one query, and return `query_miscoverage` and `f_miscoverage` of each level that it has.

        Args:
            metrics: of the query, as `row_metrics` gives them.
        """
        shares = {}
        for name, covered in metrics.items():
            column, _, level = name.partition(".")
            if column in MISSES:
                self.queries[name] += 1
                self.misses[name] += int(not covered)
                shares[f"{MISSES[column]}.{level}"] = self.misses[name] / self.queries[name]
        return shares


def round_metrics(
    rows: Sequence[Row],
    seconds: Mapping[str, float | None],
    levels: Sequence[str],
    timestamp: int,
    misses: RunningMisses,
) -> list[Metric]:
    """Return the metrics of one round, by step = evaluation; its seconds are at the step of its last.

    Args:
        rows: the round's evaluations, all of them good.
        seconds: how long its parts took, by `records.SECONDS`.
        levels: `level_names` of the trial.
        timestamp: when the round ended, in milliseconds since 1970.
        misses: counts of the rounds before; this round is added to them.
    """
    metrics = []
    for row in rows:
        values = row_metrics(row, levels)
        values |= misses.add(values)
        if row is rows[-1]:
            taken = {name.removesuffix("_seconds"): seconds.get(name) for name in records.SECONDS}
            values |= {f"seconds.{part}": value for part, value in taken.items() if value is not None}
        values[ITERATION] = row["iteration"]
        metrics += [Metric(name, value, timestamp, row["evaluation"]) for name, value in values.items()]
    return metrics


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
