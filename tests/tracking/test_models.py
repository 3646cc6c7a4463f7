"""Training curves -> MLflow."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mlflow import MlflowClient
from toy_trials import copy, runs

from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.data.models import ModelEntry
from plumbline.models.learned.arrays import as_json, write_arrays
from plumbline.study.experiments import Study
from plumbline.study.methods_and_tasks import parse_methods_and_tasks
from plumbline.study.plan import Plan
from plumbline.study.settings import Config
from plumbline.tracking.database import DatabaseStore, engine_of
from plumbline.tracking.models import import_models, trained_models

CURVES = [{"epoch": epoch, "kl": 2.0 / epoch, "reconstruction": 0.1 * epoch} for epoch in (1, 2, 3)]


@pytest.fixture
def learned() -> Plan:
    """A study with one task that reads the model `vae`; nothing reads `other`."""
    grid = [{"tasks": ["molecules"], "methods": ["random"]}]
    experiment = {"title": "one", "quick": {}, "grid": grid, "seeds": 1}
    study = {"study": "toy", "title": "T", "citation": "C", "experiments": {"TOY-F1": experiment}}
    options = {"objective": "median-1", "model": "vae"}
    library = parse_methods_and_tasks(
        {"random": {"name": "random"}},
        {
            "molecules": {
                "problem": "guacamol",
                "options": options,
                "initial": {"design": "uniform", "size": 3},
                "rounds": 1,
            }
        },
    )
    entry = ModelEntry(
        title="T", trainer="selfies-vae", options={"dataset": "d", "architecture": {"width": 16}}, seed=4
    )
    models = {"vae": entry, "other": entry}
    return Plan(Config(studies=("toy",)), {"toy": parse(Study, study, "toy")}, library, models=models)


@pytest.fixture
def kept(empty: Path, tmp_path: Path) -> DatabaseStore:
    copy(empty, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    return DatabaseStore(MlflowClient(uri), engine_of(uri), tmp_path / "artifacts")


def write(data: Path, name: str, curves: list[dict[str, float]] | None = CURVES) -> None:
    about = {} if curves is None else {"curves": as_json(curves)}
    write_arrays(data / "models" / f"{name}.npz", {"weights": np.zeros(2), **about}, {})


def test_curves_arrive_once(learned: Plan, kept: DatabaseStore, tmp_path: Path) -> None:
    write(tmp_path, "vae")
    write(tmp_path, "other")
    client = kept.client
    for _ in range(2):
        page = import_models(kept, learned.run, tmp_path)
        experiment = client.get_experiment_by_name("models").experiment_id
        assert page == f"#/experiments/{experiment}/runs?workflowType=machine_learning"
        (run,) = client.search_runs([experiment])
    assert run.info.run_name == "vae", "what no trial reads is left out"
    assert run.info.status == "FINISHED"
    for name in ("kl", "reconstruction"):
        history = client.get_metric_history(run.info.run_id, name)
        assert {entry.step: entry.value for entry in history} == {row["epoch"]: row[name] for row in CURVES}
    params = run.data.params
    assert (params["trainer"], params["seed"], params["options.dataset"]) == ("selfies-vae", "4", "d")
    assert (params["options.architecture.width"], params["options.architecture.heads"]) == ("16", "8")
    write(tmp_path, "vae", CURVES[:2])
    import_models(kept, learned.run, tmp_path)
    assert len(client.search_runs([experiment])) == 2, "another training is another run"


def test_a_run_that_broke_off_is_made_anew(learned: Plan, kept: DatabaseStore, tmp_path: Path) -> None:
    write(tmp_path, "vae")
    import_models(kept, learned.run, tmp_path)
    kept.client.update_run(runs(kept.client, "models")["vae"].info.run_id, status="RUNNING")
    import_models(kept, learned.run, tmp_path)
    assert runs(kept.client, "models")["vae"].info.status == "FINISHED"


def test_without_curves_there_is_no_experiment(learned: Plan, kept: DatabaseStore, tmp_path: Path) -> None:
    assert import_models(kept, learned.run, tmp_path) == ""
    write(tmp_path, "vae", None)
    assert trained_models(learned.run, tmp_path) == {"vae": tmp_path / "models" / "vae.npz"}
    assert import_models(kept, learned.run, tmp_path) == ""
    assert kept.client.get_experiment_by_name("models") is None


def test_a_corrupt_model_is_one_line(learned: Plan, kept: DatabaseStore, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "vae.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(PlumblineError, match=r"vae\.npz is corrupt"):
        import_models(kept, learned.run, tmp_path)


def test_other_models_of_the_plan_do_not_count(learned: Plan, tmp_path: Path) -> None:
    write(tmp_path, "vae")
    assert trained_models(replace(learned, models={}).run, tmp_path) == {}
