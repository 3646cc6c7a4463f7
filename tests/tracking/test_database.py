"""Rows in bulk, against those that MLflow's client makes."""

from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Dataset, Run
from mlflow.store.db.utils import _get_latest_schema_revision
from toy_trials import copy, everything

from plumbline.tracking import database
from plumbline.tracking.database import DatabaseStore, engine_of, knows
from plumbline.tracking.drafts import Draft, Point
from plumbline.tracking.stores import ClientStore, missing

DATA = Dataset("a", "0123", "local", '{"uri": "features/a.npz"}', None, '{"title": "A"}')


def draft(made_of: str = "x", **changes: Any) -> Draft:
    points = [Point("best_f", value, 100 + step, step) for step, value in ((3, 0.5), (4, -1.0), (5, 1e300))]
    fields = {
        "made_of": made_of,
        "name": f"ei s0 {made_of}",
        "tags": {"kind": "trial", "mlflow.note.content": "said"},
        "params": {"method": "ei", "long": "y" * 6000},
        "points": [*points, Point("notes/width", 0.25, 102, 5)],
        "begin": 50,
        "end": 110,
        "status": "FAILED",
        "datasets": [DATA],
        "files": {"spec.json": "{}", "inner/plot.svg": "<svg/>"},
    }
    return Draft(**(fields | changes))


@pytest.fixture
def bulk(empty: Path, tmp_path: Path) -> DatabaseStore:
    copy(empty, tmp_path / "bulk.db")
    uri = f"sqlite:///{tmp_path}/bulk.db"
    return DatabaseStore(MlflowClient(uri), engine_of(uri), tmp_path / "artifacts")


@pytest.fixture
def single(empty: Path, tmp_path: Path) -> ClientStore:
    copy(empty, tmp_path / "single.db")
    return ClientStore(MlflowClient(f"sqlite:///{tmp_path}/single.db"), tmp_path / "other")


def only(client: MlflowClient, experiment: str) -> Run:
    (run,) = client.search_runs([experiment])
    return run


@pytest.mark.slow
def test_a_run_in_bulk_is_what_the_client_makes(bulk: DatabaseStore, single: ClientStore, tmp_path: Path) -> None:
    found = []
    for store in (bulk, single):
        experiment = store.experiment("quick/toy/T", "quick/T")
        store.add(experiment, [draft()])
        run = only(store.client, experiment)
        history = store.client.get_metric_history(run.info.run_id, "best_f")
        said = str(run.to_dictionary()).replace(run.info.run_id, "ID")
        found.append((said, [(entry.step, entry.value, entry.timestamp) for entry in history]))
        assert store.metrics(experiment) == {"best_f", "notes/width"}
        assert [tuple(known[1:]) for known in store.runs(experiment)] == [("x", True)]
        folder = tmp_path / ("artifacts" if store is bulk else "other")
        place = folder / run.info.artifact_uri.removeprefix("mlflow-artifacts:/")
        assert (place / "inner/plot.svg").read_text() == "<svg/>"
    assert found[0] == found[1]


@pytest.mark.slow
def test_rows_in_bulk_are_those_of_the_client(bulk: DatabaseStore, single: ClientStore, tmp_path: Path) -> None:
    """In every table: ids aside, which are random there and follow from the run here."""
    tables = []
    for store, name in ((bulk, "bulk"), (single, "single")):
        experiment = store.experiment("quick/toy/T", "quick/T")
        store.add(experiment, [draft()])
        store.add(experiment, [draft("z", status="FINISHED")])
        tables.append(everything(tmp_path / f"{name}.db"))
    shapes = [
        {
            table: sorted(str([value for value in row if not is_id(value)]) for row in rows)
            for table, rows in found.items()
            if table not in ("experiments", "jobs", "spans")
        }
        for found in tables
    ]
    assert shapes[0] == shapes[1]


def is_id(value: object) -> bool:
    """Whether a value is an id, an address with one, or a time of now."""
    text = str(value)
    return (len(text) == 32 and not text.startswith("y")) or text.startswith("mlflow-artifacts:") or len(text) == 13


def test_ids_follow_from_what_a_run_is_made_of(bulk: DatabaseStore) -> None:
    experiment = bulk.experiment("quick/toy/T", "quick/T")
    bulk.add(experiment, [draft()])
    first = only(bulk.client, experiment).info.run_id
    bulk.remove([first])
    assert not bulk.client.search_runs([experiment])
    bulk.add(experiment, [draft()])
    assert only(bulk.client, experiment).info.run_id == first
    other = bulk.experiment("quick/toy/U", "quick/U")
    bulk.add(other, [draft()])
    assert only(bulk.client, other).info.run_id != first


def test_what_is_removed_leaves_nothing(bulk: DatabaseStore, tmp_path: Path) -> None:
    experiment = bulk.experiment("quick/toy/T", "quick/T")
    before = everything(tmp_path / "bulk.db")
    bulk.add(experiment, [draft(datasets=[])])
    bulk.remove([known.id for known in bulk.runs(experiment)])
    assert everything(tmp_path / "bulk.db") == before
    assert not [path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()]


def test_all_runs_of_a_call_are_added_or_none(bulk: DatabaseStore) -> None:
    experiment = bulk.experiment("quick/toy/T", "quick/T")

    def drafts() -> Any:
        yield draft("one")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bulk.add(experiment, drafts())
    assert not bulk.client.search_runs([experiment])
    bulk.add(experiment, [draft("one"), draft("two")])
    assert len(bulk.client.search_runs([experiment])) == 2


@pytest.mark.parametrize("kind", ["bulk", "single"])
def test_what_is_missing_after_others_are_removed(kind: str, request: pytest.FixtureRequest) -> None:
    store = request.getfixturevalue(kind)
    experiment = store.experiment("quick/toy/T", "quick/T")
    store.add(experiment, [draft("kept"), draft("stale"), draft("broken", status="FINISHED")])
    mine = store.client.create_run(experiment, run_name="my own").info.run_id
    broken = next(known.id for known in store.runs(experiment) if known.made_of == "broken")
    store.client.update_run(broken, status="RUNNING")
    assert missing(store, experiment, {"kept", "broken", "new"}) == {"broken", "new"}
    left = {run.info.run_id: run.info.run_name for run in store.client.search_runs([experiment])}
    assert left.pop(mine) == "my own"
    assert [*left.values()] == ["ei s0 kept"]


def test_a_run_that_was_deleted_in_the_browser_is_made_anew(bulk: DatabaseStore) -> None:
    experiment = bulk.experiment("quick/toy/T", "quick/T")
    bulk.add(experiment, [draft()])
    bulk.client.delete_run(only(bulk.client, experiment).info.run_id)
    assert missing(bulk, experiment, {"x"}) == {"x"}
    bulk.add(experiment, [draft()])
    assert only(bulk.client, experiment).info.status == "FAILED"


def test_the_tables_are_those_of_the_installed_mlflow() -> None:
    """Where they are others, compare the rows (above) and name their revision: until then runs go one by one."""
    assert _get_latest_schema_revision() == database.SCHEMA


def test_other_tables_are_left_to_the_client(bulk: DatabaseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert knows(bulk.client, bulk.engine)
    monkeypatch.setattr(database, "SCHEMA", "another")
    assert not knows(bulk.client, bulk.engine)
