"""Trials -> a tracking server, round by round while they run."""

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as arrow
from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

from plumbline.store.provenance import provenance
from plumbline.store.records import Row
from plumbline.store.spec import TrialSpec
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
    run_name,
    run_params,
    run_tags,
    trial_metrics,
)

HASTE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "5", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
"""Seconds that a trial waits for an answer, and how often it asks again; the environment may say otherwise.

MLflow's own settings are two minutes and seven times.
"""

LONG = 60.0
"""Seconds of its rounds after which a trial tells what its machine does, too."""

GRACE, SHARE = 10.0, 0.1
"""What a trial spends on its stream at most: seconds, and a share of the seconds of its rounds."""


class LiveRun:
    """Streams the rounds of one trial to a tracking server.

    A server that is down or slow costs a trial a few seconds: a failure, or too long a wait, ends the stream
    of that trial with a warning, and its run stays unfinished. A trial does not know which experiments it is part of:
    all streams are in one MLflow experiment, and `import_trials` makes the runs of each experiment.

    Args:
        uri: `http://` or `https://` of the server.
    """

    def __init__(self, uri: str) -> None:
        for name, value in HASTE.items():
            os.environ.setdefault(name, value)
        self.uri = uri
        self.run: str | None = None
        self.monitor: SystemMetricsMonitor | None = None

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
            self._watch(False)
            reason = clip(" ".join(str(error).split()), 200)
            warnings.warn(
                f"MLflow at {self.uri}: {reason}: the trial goes on without the stream; "
                "`plumbline track` imports it when it is done",
                stacklevel=3,
            )

    def start(self, key: str, spec: TrialSpec, done: int, best: float) -> None:
        """Go on with the trial's run, or make it."""
        self._watch(False)
        self.run, self.waited, self.computed = None, 0.0, 0.0
        self.logged, self.last, self.whole = logged_rounds(spec.budget.rounds), -1, done == 0
        self.initial = spec.budget.initial.size
        self.seen: list[arrow.Table] = []
        with self._sparing():
            client = self.client = MlflowClient(self.uri)
            experiment = experiment_id(client, live_experiment())
            found = client.search_runs([experiment], f"tags.`{TRIAL}` = '{key}'", max_results=1)
            if found:
                self._go_on(found[0])
                return
            tags = run_tags(key, spec, provenance())
            run = client.create_run(experiment, tags=tags, run_name=run_name(spec)).info.run_id
            log_params(client, run, run_params(spec))
            self.run = run

    def _go_on(self, run: Run) -> None:
        """Take up a run where it ends: rounds that it has are not logged again, they are the same."""
        self.last = max((entry.step for entry in self.client.get_metric_history(run.info.run_id, MARK)), default=-1)
        if run.info.status != "RUNNING":
            self.client.update_run(run.info.run_id, status="RUNNING")
        if ERROR in run.data.tags:
            self.client.delete_tag(run.info.run_id, ERROR)
        self.run = run.info.run_id

    def round(self, rows: list[Row], seconds: dict[str, float]) -> None:
        """Log the metrics of the round, if it is one of those that are logged.

        A stream that took a trial up in the middle does not know how it began: it logs what rounds say for themselves.
        """
        if self.run is None or not rows:
            return
        self.computed += seconds["round_seconds"]
        with self._sparing():
            self._watch(self.computed >= LONG)
            new = arrow.Table.from_pylist([row | seconds for row in rows], schema=ROWS)
            self.seen.append(new)
            iteration, evaluations = rows[-1]["iteration"], rows[-1]["evaluation"] + 1
            part = evaluations < self.initial  # a long initial design comes in pieces
            if part or iteration not in self.logged or evaluations <= self.last:
                return
            self.seen = [arrow.concat_tables(self.seen).combine_chunks()]
            found = trial_metrics(self.seen[0]) if self.whole else trial_metrics(new, kinds=("query", "round"))
            taken, now = seconds["round_seconds"], milliseconds(time.time())
            metrics = round_metrics(found, rows[-1]["seed"], iteration, evaluations, now, taken)
            log_metrics(self.client, self.run, metrics)

    def end(self, error: str | None) -> None:
        """Set the run's status: KILLED where it was not seen from its beginning."""
        if self.run is None:
            return
        status, text = outcome(error)
        with self._sparing():
            self._watch(False)
            if text is not None:
                self.client.set_tag(self.run, ERROR, text)
            self.client.set_terminated(self.run, status if self.whole else "KILLED")
        self.run = None

    def _watch(self, long: bool) -> None:
        """Log what the processors, the memory and the GPU of the machine do while a trial that takes long runs."""
        if long and self.monitor is None and self.run is not None:
            self.monitor = SystemMetricsMonitor(self.run, resume_logging=True, tracking_uri=self.uri)
            self.monitor.start()
        elif not long and self.monitor is not None:
            monitor, self.monitor = self.monitor, None
            monitor.finish()
