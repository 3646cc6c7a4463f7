"""Datasets and models as inputs of runs."""

import hashlib
import json
from pathlib import Path

from mlflow.utils.validation import _validate_dataset

from plumbline.core.options import parse
from plumbline.data.datasets import Dataset
from plumbline.store.spec import TrialSpec
from plumbline.study.experiments import Study
from plumbline.study.methods_and_tasks import parse_methods_and_tasks
from plumbline.study.plan import Plan
from plumbline.study.settings import Config
from plumbline.tracking.datasets import dataset_inputs

BUDGET = {"initial": {"design": "uniform", "size": 3}, "rounds": 1}


def plan() -> tuple[Plan, TrialSpec, TrialSpec]:
    """A study of one task that reads data and one that reads none, and their trials."""
    grid = [{"tasks": ["weights", "branin"], "methods": ["random"]}]
    study = {"study": "toy", "title": "T", "citation": "C"}
    study["experiments"] = {"TOY-F1": {"title": "one", "quick": {}, "grid": grid, "seeds": 1}}
    library = parse_methods_and_tasks(
        {"random": {"name": "random"}},
        {
            "weights": {"problem": "lasso-dna", "options": {"dataset": "dna"}, **BUDGET},
            "branin": {"problem": "branin", **BUDGET},
        },
    )
    entry = Dataset(title="Splice sites", url="https://example.org/dna", licence="free", citation="C", file="dna.txt")
    made = Plan(Config(studies=("toy",)), {"toy": parse(Study, study, "toy")}, library, datasets={"dna": entry})
    first, second = (chunk.spec for chunk in made.resolve("TOY-F1").chunks)
    return made, first, second


def test_what_a_trial_reads(tmp_path: Path) -> None:
    made, reading, other = plan()
    path = tmp_path / "features" / "dna.parquet"
    path.parent.mkdir()
    path.write_bytes(b"rows")
    inputs = dataset_inputs(made.run, tmp_path)
    (found,) = inputs(reading)
    assert (found.name, found.digest) == ("dna", hashlib.sha256(b"rows").hexdigest()[:16])
    assert (found.source_type, json.loads(found.source)) == ("http", {"url": "https://example.org/dna"})
    assert json.loads(found.profile) == {"title": "Splice sites", "licence": "free"}
    _validate_dataset(found)
    assert inputs(other) == []
    assert dataset_inputs(made.run, None)(reading) == []


def test_files_that_are_gone_have_names_still(tmp_path: Path) -> None:
    made, reading, _ = plan()
    (found,) = dataset_inputs(made.run, tmp_path)(reading)
    assert (found.name, found.digest) == ("dna", "not-built")
    _validate_dataset(found)
