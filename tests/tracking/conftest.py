"""A toy study, run once."""

from pathlib import Path

import pytest
from toy_trials import Results

from plumbline.core.options import parse
from plumbline.study.experiments import Study
from plumbline.study.methods_and_tasks import parse_methods_and_tasks
from plumbline.study.plan import Plan
from plumbline.study.settings import Config
from plumbline.tracking.importing import import_trials

CHEAP = {"search": {"restarts": 1, "raw_samples": 8, "maxiter": 5}}


@pytest.fixture(scope="session")
def plan() -> Plan:
    """Two experiments that share their trials, the second in a figure that minimises, and one without any."""
    grid = [{"tasks": ["branin"], "methods": ["random", "ei"]}]
    common = {"grid": grid, "seeds": 2}
    common["diagnostics"] = {"alphas": [0.1, "1/sqrt(n)"]}
    rows = [{"metric": "crps", "label": "CRPS"}, {"metric": "best_f", "label": "least value", "minimise": True}]
    figure = {"kind": "curves", "options": {"rows": rows}}
    study = {
        "study": "toy",
        "title": "A toy study",
        "citation": "Nobody, nowhere.",
        "experiments": {
            "TOY-F1": {"title": "one", "quick": {}, **common},
            "TOY-F10": {"title": "ten", "quick": {}, "figure": figure, **common},
            "TOY-F2": {"title": "not in quick", **common},
        },
    }
    library = parse_methods_and_tasks(
        {"random": {"name": "random"}, "ei": {"name": "ei", "options": CHEAP}},
        {"branin": {"problem": "branin", "initial": {"design": "uniform", "size": 3}, "rounds": 2}},
    )
    return Plan(Config(studies=("toy",)), {"toy": parse(Study, study, "toy")}, library)


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory, plan: Plan) -> Results:
    """Trials that went well, not to be changed."""
    results = Results(tmp_path_factory.mktemp("results"), plan)
    results.run()
    return results


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without runs: making one takes seconds, copying one does not."""
    folder = tmp_path_factory.mktemp("empty")
    database = folder / "inner" / "mlflow.db"
    import_trials(Plan(Config(studies=("none",)), {}).run, folder, folder, folder, f"sqlite:///{database}")
    return database


@pytest.fixture
def results(done: Results, empty: Path, tmp_path: Path) -> Results:
    """The same trials, with a database of the test's own."""
    return done.beside(empty, tmp_path)


@pytest.fixture(scope="session")
def imported(done: Results, empty: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The same trials with what was imported of them, not to be changed."""
    results = done.beside(empty, tmp_path_factory.mktemp("imported"))
    results.said = results.track()
    return results
