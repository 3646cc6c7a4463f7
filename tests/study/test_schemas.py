"""The JSON schemas: those committed are those of the code, and they say what the code says."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from plumbline.study.schemas import schemas, write_schemas

FILES = {
    "config.yaml": "config",
    "desk.yaml": None,  # laid over the first: alone it lacks the studies
    "datasets.yaml": "datasets",
    "methods.yaml": "methods",
    "tasks.yaml": "tasks",
}


@pytest.fixture(scope="module")
def validators() -> dict[str, Any]:
    return {
        name.removesuffix(".schema.json"): jsonschema.Draft202012Validator(schema) for name, schema in schemas().items()
    }


def errors(validator: Any, content: Any) -> list[str]:
    return [f"{list(error.absolute_path)}: {error.message}" for error in validator.iter_errors(content)]


def test_those_committed_are_those_of_the_code(root: Path, tmp_path: Path) -> None:
    for path in write_schemas(tmp_path):
        assert (root / "config/schemas" / path.name).read_text() == path.read_text(), "run `plumbline schema`"
    assert {path.name for path in (root / "config/schemas").iterdir()} == set(schemas())


def test_they_are_schemas() -> None:
    for schema in schemas().values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("file", [name for name, schema in FILES.items() if schema])
def test_the_committed_files_obey(file: str, root: Path, validators: dict[str, Any]) -> None:
    content = yaml.safe_load((root / "config" / file).read_text())
    assert errors(validators[str(FILES[file])], content) == []


def test_the_committed_studies_obey(root: Path, validators: dict[str, Any]) -> None:
    for path in (root / "config/studies").glob("*.yaml"):
        # As JSON has it: names of experiments are text.
        assert errors(validators["study"], json.loads(json.dumps(yaml.safe_load(path.read_text())))) == [], path


@pytest.mark.parametrize(
    ("schema", "content", "part"),
    [
        ("methods", {"a": {"name": "eii"}}, "'eii' is not one of"),
        ("methods", {"a": {"name": "ei", "options": {"jiter": 1}}}, "'jiter' was unexpected"),
        ("methods", {"a": {"name": "ei", "options": {"model": {"kernel": "rfb"}}}}, "'rfb' is not one of"),
        ("methods", {"a": {"like": "b", "colur": "blue"}}, "'colur' was unexpected"),
        ("methods", {"a": {"like": "b", "colour": "bleu"}}, "'bleu' is not valid"),
        ("tasks", {"a": {"problem": "brannin"}}, "'brannin' is not valid"),
        ("tasks", {"a": {"problem": "radio", "options": {"nch": 2}}}, "'nch' was unexpected"),
        ("study", {"study": "s", "title": "t", "citation": "c", "experiments": {"F": {}}}, "'title' is a required"),
        (
            "study",
            {"study": "s", "title": "t", "citation": "c", "experiments": {"F": {"title": "x", "figur": {}}}},
            "'figur' was unexpected",
        ),
    ],
)
def test_typos_are_seen(schema: str, content: Any, part: str, validators: dict[str, Any]) -> None:
    assert any(part in error for error in errors(validators[schema], content)), errors(validators[schema], content)


@pytest.mark.parametrize(
    ("schema", "content"),
    [
        ("methods", {"a": {"like": "b", "options": {"alpha": 0.2}}}),
        ("tasks", {"a": {"problem": "ackley-2", "initial": {"size": 3}}}),
        ("tasks", {"a": {"problem": "molecules", "options": {"target": "qed"}}}),
        ("methods", {"a": {"name": "trust-region", "options": {"base": {"options": {"jitter": 0.1}}}}}),
    ],
)
def test_what_an_entry_may_inherit_is_not_missed(schema: str, content: Any, validators: dict[str, Any]) -> None:
    assert errors(validators[schema], content) == []


@pytest.mark.parametrize(("base", "fits"), [("ei", True), ({"name": "ei"}, True), (3, False), ({"nme": "ei"}, False)])
def test_a_method_inside_another_may_be_its_name_alone(base: Any, fits: bool, validators: dict[str, Any]) -> None:
    content = {"a": {"name": "trust-region", "options": {"base": base}}}
    assert (errors(validators["methods"], content) == []) == fits
