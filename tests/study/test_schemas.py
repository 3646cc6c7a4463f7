"""The JSON schemas: those committed are those of the code, and they say what the code says."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.registry.schema_options import options_of
from plumbline.study.schemas import BEGIN, END, TABLES, option_tables, schemas, with_tables, write_schemas

FILES = {
    "config.yaml": "config",
    "desk.yaml": "config",
    "paper.yaml": "config",
    "datasets.yaml": "datasets",
    "models.yaml": "models",
    "methods/*.yaml": "methods",
    "tasks/*.yaml": "tasks",
    "studies/*.yaml": "study",
}


@pytest.fixture(scope="module")
def validators() -> dict[str, Any]:
    return {
        name.removesuffix(".schema.json"): jsonschema.Draft202012Validator(schema) for name, schema in schemas().items()
    }


STUDY: dict[str, Any] = {"study": "s", "title": "t", "citation": "c", "experiments": {}}


def errors(validator: Any, content: Any) -> list[str]:
    return [f"{list(error.absolute_path)}: {error.message}" for error in validator.iter_errors(content)]


def test_those_committed_are_those_of_the_code(root: Path, tmp_path: Path) -> None:
    for path in write_schemas(tmp_path):
        assert (root / "config/schemas" / path.name).read_text() == path.read_text(), "run `plumbline schema`"
    assert {path.name for path in (root / "config/schemas").iterdir()} == set(schemas())


@pytest.mark.slow
def test_they_are_schemas() -> None:
    for schema in schemas().values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("files", FILES)
def test_the_committed_files_obey(files: str, root: Path, validators: dict[str, Any]) -> None:
    paths = list((root / "config").glob(files))
    assert paths
    for path in paths:
        # As JSON has it: names of experiments are text.
        content = json.loads(json.dumps(yaml.safe_load(path.read_text())))
        assert errors(validators[FILES[files]], content) == [], path


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
        ("study", {**STUDY, "experiments": {"F": {}}}, "'title' is a required"),
        ("study", {**STUDY, "experiments": {"F": {"title": "x", "figur": {}}}}, "'figur' was unexpected"),
        (
            "study",
            {**STUDY, "claims": {"K": {"source": "s", "statement": "s", "primary": {"metric": "regret"}}}},
            "is not valid under any",
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
        ("study", {**STUDY, "experiments": {"F": {"like": "E", "figure": {"options": {"rows": []}}}}}),
        ("study", {**STUDY, "claims": {"K": {"source": "s", "statement": "s", "secondary": [{"like": "primary"}]}}}),
        ("methods", {"a": {"name": "trust-region", "options": {"base": {"options": {"jitter": 0.1}}}}}),
    ],
)
def test_what_an_entry_may_inherit_is_not_missed(schema: str, content: Any, validators: dict[str, Any]) -> None:
    assert errors(validators[schema], content) == []


@pytest.mark.parametrize(("base", "fits"), [("ei", True), ({"name": "ei"}, True), (3, False), ({"nme": "ei"}, False)])
def test_a_method_inside_another_may_be_its_name_alone(base: Any, fits: bool, validators: dict[str, Any]) -> None:
    content = {"a": {"name": "trust-region", "options": {"base": base}}}
    assert (errors(validators["methods"], content) == []) == fits


def test_the_tables_of_the_readme_are_those_of_the_code(root: Path) -> None:
    text = (root / "config/README.md").read_text()
    assert with_tables(text) == text, "run `plumbline schema`"
    assert len(option_tables().splitlines()) > 100


def test_every_field_of_the_tables_has_a_meaning() -> None:
    rows = [(model.__name__, row) for model in TABLES.values() for row in options_of(model.model_json_schema())]
    assert [f"{model}.{row.option}" for model, row in rows if not row.description] == []


def test_tables_are_written_between_the_markers_beside_the_schemas(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\noutdated\n{END}\nafter\n")
    assert readme in write_schemas(tmp_path / "schemas")
    text = readme.read_text()
    assert text.startswith(f"before\n{BEGIN}\n\n### Configuration")
    assert text.endswith(f"\n{END}\nafter\n")
    assert "outdated" not in text
    assert "| `rounds` | `integer (>= 0, <= 100000)` | required | after the initial design" in text
    readme.write_text("no markers\n")
    with pytest.raises(PlumblineError, match="no place for the tables of options"):
        write_schemas(tmp_path / "schemas")
