"""JSON schemas of the YAML files, by which editors complete and check.

Each YAML file names its schema in its first line. The schemas list the registered names, with the options of each.
"""

import json
from pathlib import Path
from typing import Any

from plumbline.core.files import write_text
from plumbline.core.options import Options
from plumbline.data.datasets import Dataset
from plumbline.data.models import ModelEntry
from plumbline.registry.catalogue import Kind, catalogue
from plumbline.study.experiments import Study
from plumbline.study.legends import COLOURS
from plumbline.study.methods_and_tasks import MethodEntry, TaskEntry
from plumbline.study.settings import Config

Schema = dict[str, Any]
DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def schemas() -> dict[str, Schema]:
    """Return the schema of each kind of file, by the name of the schema's file."""
    return {
        "config.schema.json": {**DIALECT, **Config.model_json_schema()},
        "datasets.schema.json": _mapping(Dataset),
        "methods.schema.json": _methods(),
        "models.schema.json": _models(),
        "study.schema.json": _study(),
        "tasks.schema.json": _tasks(),
    }


def write_schemas(folder: Path) -> list[Path]:
    """Write every schema to `folder`, and return the files."""
    paths = []
    for name, schema in schemas().items():
        write_text(folder / name, json.dumps(schema, indent=2) + "\n")
        paths.append(folder / name)
    return paths


def _mapping(model: type[Options]) -> Schema:
    """Return the schema of a mapping of names to `model`; entries that are like another lack what that one has."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    return {**DIALECT, "type": "object", "additionalProperties": schema, "$defs": definitions}


def _lenient(schema: Any) -> Any:
    """Return a schema without anything required, at any depth: an entry may have that from the one that it is like."""
    if isinstance(schema, dict):
        return {
            key: _lenient(value) for key, value in schema.items() if not (key == "required" and isinstance(value, list))
        }
    return [_lenient(one) for one in schema] if isinstance(schema, list) else schema


def _moved(schema: Any, home: str) -> Any:
    """Return a schema whose references lead to the definitions below `home`."""
    if isinstance(schema, dict):
        return {
            key: value.replace("#/$defs/", f"{home}/$defs/", 1) if key == "$ref" else _moved(value, home)
            for key, value in schema.items()
        }
    return [_moved(one, home) for one in schema] if isinstance(schema, list) else schema


def _with_options(schema: Schema, kind: Kind, field: str, definitions: Schema, lenient: bool) -> Schema:
    """Return `schema` with the registered names allowed in `field`, and the options of the one that is named."""
    listings = getattr(catalogue(), kind)
    cases = []
    for name, listing in listings.items():
        place = f"{kind}.{name}"
        options = _moved(listing.options, f"#/$defs/{place}")
        definitions[place] = _lenient(options) if lenient else options
        cases.append(
            {
                "if": {"properties": {field: {"const": name}}, "required": [field]},
                "then": {"properties": {"options": {"$ref": f"#/$defs/{place}"}}},
            }
        )
    return {**schema, "allOf": cases}


def _methods() -> Schema:
    whole = _mapping(MethodEntry)
    entry = _lenient(whole["additionalProperties"])
    entry["properties"]["name"] |= {"enum": list(catalogue().method)}
    entry["properties"]["colour"] = {"anyOf": [{"enum": ["", *COLOURS]}, {"pattern": "^#[0-9a-fA-F]{6}$"}]}
    whole["additionalProperties"] = _with_options(entry, "method", "name", whole["$defs"], lenient=True)
    return whole


def _models() -> Schema:
    whole = _mapping(ModelEntry)
    entry = whole["additionalProperties"]
    entry["properties"]["trainer"] |= {"enum": list(catalogue().trainer)}
    whole["additionalProperties"] = _with_options(entry, "trainer", "trainer", whole["$defs"], lenient=False)
    return whole


def _tasks() -> Schema:
    whole = _mapping(TaskEntry)
    entry = _lenient(whole["additionalProperties"])
    names = list(catalogue().problem)
    # `ackley-2` is short for `ackley` with `dim: 2`.
    families = "|".join(name for name, one in catalogue().problem.items() if "dim" in one.options.get("properties", {}))
    entry["properties"]["problem"] |= {"anyOf": [{"enum": names}, {"pattern": f"^({families})-[0-9]+$"}]}
    whole["additionalProperties"] = _with_options(entry, "problem", "problem", whole["$defs"], lenient=True)
    whole["$defs"] = {
        name: _lenient(definition) if name == "InitialDesign" else definition
        for name, definition in whole["$defs"].items()
    }
    return whole


def _study() -> Schema:
    schema = {**DIALECT, **Study.model_json_schema()}
    definitions = schema["$defs"]
    output = definitions.pop("Output")
    properties = definitions["Experiment"]["properties"]
    for kind in ("illustration", "figure", "table"):
        one = {**output, "properties": {**output["properties"], "kind": {"enum": list(getattr(catalogue(), kind))}}}
        definitions[f"Output.{kind}"] = _with_options(one, kind, "kind", definitions, lenient=False)
        properties[kind] = {
            "anyOf": [{"$ref": f"#/$defs/Output.{kind}"}, {"type": "null"}],
            **{key: value for key, value in properties[kind].items() if key == "description"},
            "default": None,
        }
    return schema
