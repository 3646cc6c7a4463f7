"""Where runs are kept: a tracking server through MLflow's client, or (`database`) a local database in bulk."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, Protocol

from mlflow import MlflowClient
from mlflow.entities import DatasetInput, InputTag, Metric, ViewType
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

from plumbline.tracking.artifacts import put
from plumbline.tracking.drafts import MADE_OF, Draft
from plumbline.tracking.runs import experiment_id, log_metrics, log_params

PAGE = 1000
"""Runs in one page of a search."""

WHOLE = ("FINISHED", "FAILED")
"""States of runs that were imported to their end."""

DATA_CONTEXT = "mlflow.data.context"


class Known(NamedTuple):
    """A run that a store has: its id, the digest of what it is made of, and whether it is whole."""

    id: str
    made_of: str
    whole: bool


class Store(Protocol):
    """Keeps imported runs."""

    client: MlflowClient

    def experiment(self, name: str, place: str) -> str:
        """Return the id of the MLflow experiment of a name, made where there is none; its artifacts lie at `place`."""

    def runs(self, experiment: str) -> Iterable[Known]:
        """Return the imported runs of an experiment, deleted ones too where they stand in the way of new ones."""

    def metrics(self, experiment: str) -> set[str]:
        """Return the names of the metrics of an experiment's runs."""

    def add(self, experiment: str, drafts: Iterable[Draft]) -> None:
        """Keep new runs; what is seen of one after a kill is whole, or is said not to be."""

    def remove(self, runs: Collection[str]) -> None:
        """Remove runs: what they were made of is no more."""

    def finish(self) -> None:
        """Prepare what was imported for those who look at it."""


def missing(store: Store, experiment: str, wanted: Collection[str]) -> set[str]:
    """Remove imported runs that are not whole, are there twice or are not wanted, and return what has none.

    Args:
        store: of the runs.
        experiment: the id of the MLflow experiment.
        wanted: digests of what its runs are made of.
    """
    found, others = set(), []
    for run in store.runs(experiment):
        if run.whole and run.made_of in wanted and run.made_of not in found:
            found.add(run.made_of)
        else:
            others.append(run.id)
    if others:
        store.remove(others)
    return {*wanted} - found


class ClientStore:
    """A store behind MLflow's client: a tracking server, or a database of a version whose tables we do not know.

    Args:
        client: of the store.
        artifacts: the folder that stands for `mlflow-artifacts:/`; None for the server's own.
    """

    def __init__(self, client: MlflowClient, artifacts: Path | None = None) -> None:
        self.client = client
        self.artifacts = artifacts

    def experiment(self, name: str, place: str) -> str:
        """Return the id of the MLflow experiment of a name, made where there is none."""
        return experiment_id(self.client, name, None if self.artifacts is None else location(place))

    def runs(self, experiment: str) -> Iterator[Known]:
        """Yield the imported runs of an experiment."""
        for run in self._search(experiment):
            yield Known(run.info.run_id, run.data.tags[MADE_OF], run.info.status in WHOLE)

    def metrics(self, experiment: str) -> set[str]:
        """Return the names of the metrics of an experiment's runs."""
        return {name for run in self._search(experiment) for name in run.data.metrics}

    def _search(self, experiment: str) -> Iterator:
        token = None
        while True:
            page = self.client.search_runs(
                [experiment], f"tags.`{MADE_OF}` LIKE '%'", ViewType.ACTIVE_ONLY, PAGE, page_token=token
            )
            yield from page
            token = page.token
            if not token:
                return

    def add(self, experiment: str, drafts: Iterable[Draft]) -> None:
        """Keep new runs; the status of each comes last, because it says that the run is whole."""
        for draft in drafts:
            tags = {**draft.tags, MADE_OF: draft.made_of}
            run = self.client.create_run(experiment, draft.begin, tags, draft.name).info
            log_params(self.client, run.run_id, draft.params)
            points = [Metric(point.name, point.value, point.time, point.step) for point in draft.points]
            log_metrics(self.client, run.run_id, points)
            if draft.datasets:
                inputs = [DatasetInput(one, [InputTag(DATA_CONTEXT, "trial")]) for one in draft.datasets]
                self.client.log_inputs(run.run_id, inputs)
            self._attach(run.artifact_uri, draft.files)
            self.client.set_terminated(run.run_id, draft.status, draft.end)

    def _attach(self, uri: str, files: Mapping[str, Path | str]) -> None:
        if self.artifacts is not None:
            put(files, folder_of(uri, self.artifacts))
        elif files:
            repository = get_artifact_repository(uri, tracking_uri=self.client.tracking_uri)
            with TemporaryDirectory() as folder:
                put(files, Path(folder))
                repository.log_artifacts(folder)

    def remove(self, runs: Collection[str]) -> None:
        """Delete runs; MLflow shows them among the deleted ones."""
        for run in runs:
            self.client.delete_run(run)

    def finish(self) -> None:
        """Leave the rest to the server."""


SCHEME = "mlflow-artifacts:/"
"""Artifacts at such an address are served from the folder that the server is given, wherever that is now."""


def location(place: str) -> str:
    """Return the address of a place among the artifacts that the server serves."""
    return f"{SCHEME}{place}"


def folder_of(uri: str, artifacts: Path) -> Path:
    """Return the folder of an address that `location` made."""
    return artifacts / uri.removeprefix(SCHEME)
