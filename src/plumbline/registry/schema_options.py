"""Options as rows: their paths, values, defaults and descriptions, from a JSON schema."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

Schema = dict[str, Any]


class Option(NamedTuple):
    """One option: its path, as `model.kernel`, its default in YAML's words, its possible values, and its meaning."""

    option: str
    default: str
    values: str
    description: str


def options_of(schema: Schema, inside: bool = False) -> Iterator[Option]:
    """Yield the options in a JSON schema, nested ones by their dotted paths.

    Args:
        schema: of the options.
        inside: whether to tell what the items of lists have, as `rows[].metric`, and what an object has that may be
            null; none may hold a list of its own kind.
    """
    yield from _options(schema, schema.get("$defs", {}), "", {}, inside)


def _options(schema: Schema, definitions: Schema, prefix: str, defaults: Schema, inside: bool) -> Iterator[Option]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        inner, default = resolved(field, definitions), defaults.get(name, field.get("default"))
        if "properties" in inner:
            yield from _options(inner, definitions, f"{prefix}{name}.", default or {}, inside)
            continue
        item = resolved(inner.get("items", {}), definitions)
        text = "(required)" if name in required else _written(default, field, item)
        yield Option(prefix + name, text, _values(field, definitions), field.get("description", ""))
        if inside:
            yield from _options(item, definitions, f"{prefix}{name}[].", {}, inside)
            for one in (resolved(choice, definitions) for choice in inner.get("anyOf", ())):
                yield from _options(one, definitions, f"{prefix}{name}.", {}, inside)


def _written(default: Any, field: Schema, item: Schema) -> str:
    """Return a default as YAML; a schema has no default for a mapping that is empty by default."""
    if isinstance(default, dict):
        default = {name: value for name, value in default.items() if value is not None}
    elif default is None and field.get("type") == "object":
        default = {}
    elif isinstance(default, list):
        default = [_without_defaults(one, item) if isinstance(one, dict) else one for one in default]
    return default if isinstance(default, str) else json.dumps(default)


def _without_defaults(value: Schema, schema: Schema) -> Schema:
    """Return the fields of an object that are not as they would be by themselves."""
    fields = schema.get("properties", {})
    return {name: one for name, one in value.items() if one != fields.get(name, {}).get("default")}


def resolved(field: Schema, definitions: Schema) -> Schema:
    """Return the schema of a field, itself or what it refers to."""
    return definitions[field["$ref"].rpartition("/")[2]] if "$ref" in field else field


def _values(field: Schema, definitions: Schema) -> str:
    """Return the values that a field may have, in words."""
    field = resolved(field, definitions)
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_values(one, definitions) for one in field["anyOf"]))
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    if "const" in field:
        return str(field["const"])
    if "items" in field:
        return f"list of {_values(field['items'], definitions)}"
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {field[key]:g}" for key, sign in signs.items() if key in field]
    kinds = field.get("type", "anything")
    kind = kinds if isinstance(kinds, str) else " or ".join(kinds)
    return " ".join([kind, *([f"({', '.join(bounds)})"] if bounds else [])])
