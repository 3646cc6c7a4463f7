"""JSON schemas of the YAML files, by which editors complete and check, and the tables of `config/README.md`.

Each YAML file names its schema in its first line. The schemas list the registered names, with the options of each.
"""

import json
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import write_text
from plumbline.core.options import Options
from plumbline.data.datasets import Dataset, Features
from plumbline.data.models import ModelEntry
from plumbline.registry.catalogue import Kind, catalogue
from plumbline.registry.schema_options import Schema, options_of
from plumbline.store.spec import Snapshots
from plumbline.study.claims import Beyond, Claim, ClaimTests, Former, InWords, Published, Size, Stuck
from plumbline.study.experiments import Block, Experiment, Hyperparameter, Output, Scale, Study
from plumbline.study.legends import COLOURS
from plumbline.study.methods_and_tasks import MethodEntry, TaskEntry
from plumbline.study.settings import Config

TABLES: dict[str, type[Options]] = {
    "Configuration (`config.yaml`, and `--config key=value`)": Config,
    "Method (an entry of `methods/*.yaml`)": MethodEntry,
    "Task (an entry of `tasks/*.yaml`)": TaskEntry,
    "Study (a file of `studies`)": Study,
    "Experiment (an entry of `experiments` in a study)": Experiment,
    "Block (an item of `grid`)": Block,
    "Scale (`quick`, `desk` and `paper` of an experiment)": Scale,
    "Snapshots (`diagnostics.snapshots` of an experiment)": Snapshots,
    "Figure, table, illustration (of an experiment)": Output,
    "Claim (an entry of `claims` in a study)": Claim,
    "Test (`primary` and items of `secondary` in a claim)": ClaimTests,
    "Published (of a test)": Published,
    "Size (`matters` of a test)": Size,
    "Stuck (of a claim)": Stuck,
    "Beyond (of a claim)": Beyond,
    "Former (of a claim)": Former,
    "In words (`in_words` of a claim)": InWords,
    "Hyperparameter (an item of a search space in `spaces`)": Hyperparameter,
    "Model (an entry of `models.yaml`)": ModelEntry,
    "Dataset (an entry of `datasets.yaml`)": Dataset,
    "Features (of a dataset)": Features,
}
"""Tables of options, by title."""

BEGIN, END = "<!-- options: written by `plumbline schema` -->", "<!-- end of options -->"

DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def schemas() -> dict[str, Schema]:
    """Return the schema of each kind of file, by the name of the schema's file."""
    return {
        "config.schema.json": _config(),
        "datasets.schema.json": _mapping(Dataset),
        "methods.schema.json": _methods(),
        "models.schema.json": _models(),
        "study.schema.json": _study(),
        "tasks.schema.json": _tasks(),
    }


def write_schemas(folder: Path) -> list[Path]:
    """Write every schema to `folder`, and the tables of options into the README beside it; return the files."""
    paths = []
    readme = folder.parent / "README.md"
    if readme.is_file():
        write_text(readme, with_tables(readme.read_text(encoding="utf-8")))
        paths.append(readme)
    for name, schema in schemas().items():
        write_text(folder / name, json.dumps(schema, indent=2) + "\n")
        paths.append(folder / name)
    return paths


def with_tables(text: str) -> str:
    """Return the text of a README with the tables of options between its two markers.

    Raises:
        PlumblineError: there are no markers.
    """
    before, found, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise PlumblineError(f"no place for the tables of options: {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n\n{option_tables()}\n{END}{after}"


def option_tables() -> str:
    """Return the tables of all that the YAML files may say, in Markdown."""
    return "\n".join(
        f"### {title}\n\n{option_table(_unfolded(model.model_json_schema()))}" for title, model in TABLES.items()
    )


def option_table(schema: Schema, inside: bool = False) -> str:
    """Return the table of the options in a schema, in Markdown.

    Args:
        schema: of the options.
        inside: whether with those of the items of lists and of objects that may be null.
    """
    rows = [
        [f"`{row.option}`", _code(row.values), _code(row.default), row.description.rstrip(".")]
        for row in options_of(schema, inside)
    ]
    lines = [["field", "type", "default", "meaning"], ["---"] * 4, *rows]
    escaped = [" | ".join(cell.replace("|", "\\|") for cell in line) for line in lines]
    return "".join(f"| {line} |\n" for line in escaped)


def _unfolded(schema: Schema) -> Schema:
    """Return the schema of a model that holds others of its own kind, which is a reference, as that of any other."""
    definitions = schema.get("$defs", {})
    return {**definitions[schema["$ref"].rpartition("/")[2]], "$defs": definitions} if "$ref" in schema else schema


def _code(text: str) -> str:
    return {"": "", "(required)": "required"}.get(text, f"`{text}`")


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
    listings = catalogue().listed(kind)
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


def _config() -> Schema:
    """A file may be a layer over `config.yaml`, such as `desk.yaml`: nothing is required of it."""
    return {**DIALECT, **{key: value for key, value in Config.model_json_schema().items() if key != "required"}}


def _methods() -> Schema:
    whole = _mapping(MethodEntry)
    entry = _lenient(whole["additionalProperties"])
    entry["properties"]["name"] |= {"enum": list(catalogue().listed("method"))}
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
    problems = catalogue().listed("problem")
    # `ackley-2` is short for `ackley` with `dim: 2`.
    families = "|".join(name for name, one in problems.items() if "dim" in one.options.get("properties", {}))
    entry["properties"]["problem"] |= {"anyOf": [{"enum": list(problems)}, {"pattern": f"^({families})-[0-9]+$"}]}
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
        one.pop("required")  # an experiment may have it from the one that it is like
        definitions[f"Output.{kind}"] = _with_options(one, kind, "kind", definitions, lenient=True)
        properties[kind] = {
            "anyOf": [{"$ref": f"#/$defs/Output.{kind}"}, {"type": "null"}],
            **{key: value for key, value in properties[kind].items() if key == "description"},
            "default": None,
        }
    for name in ("Experiment", "ClaimTests"):
        required = definitions[name].pop("required")
        definitions[name] |= {"if": {"not": {"required": ["like"]}}, "then": {"required": required}}
    fields = definitions["ClaimTests"]["properties"]
    for name, field in fields.items():  # null takes away what the primary test has
        words = {key: field[key] for key in ("title", "description", "default") if key in field}
        fields[name] = {"anyOf": [field, {"type": "null"}], **words}
    return schema
