"""The options of registered classes, from their JSON schemas: in words, and with their defaults filled in."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from plumbline.api.written import Leaf, Tree, tree_of
from plumbline.core.inputs import METHOD
from plumbline.registry.catalogue import Kind, catalogue

Schema = dict[str, Any]

DEFAULT = "default"
"""The origin of a value that is written nowhere."""


class Option(NamedTuple):
    """One option: its path as `--option` takes it, its default in YAML's words, and the values that it may have."""

    option: str
    default: str
    values: str


def options_of(schema: Schema) -> Iterator[Option]:
    """Yield the options that a JSON schema describes, those of options of options by their dotted paths."""
    yield from _options(schema, schema.get("$defs", {}), "", {})


def _options(schema: Schema, definitions: Schema, prefix: str, defaults: Schema) -> Iterator[Option]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        inner, default = _resolved(field, definitions), defaults.get(name, field.get("default"))
        if "properties" in inner:
            yield from _options(inner, definitions, f"{prefix}{name}.", default or {})
        else:
            text = "(required)" if name in required else default if isinstance(default, str) else json.dumps(default)
            yield Option(prefix + name, text, _values(field, definitions))


def _resolved(field: Schema, definitions: Schema) -> Schema:
    return definitions[field["$ref"].rpartition("/")[2]] if "$ref" in field else field


def _values(field: Schema, definitions: Schema) -> str:
    """Return the values that a field may have, in words."""
    field = _resolved(field, definitions)
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


def with_defaults(kind: Kind, name: str, given: Tree) -> Tree:
    """Return the options of a registered class, `given` ones as they are and all others at their defaults."""
    return fill_in(catalogue().find(kind, name).options, given)


def fill_in(schema: Schema, given: Tree) -> Tree:
    """Return a tree with the defaults of a JSON schema where it has none of its own, at any depth."""
    return _object(schema, given, schema.get("$defs", {}))


def _object(schema: Schema, given: Tree, definitions: Schema) -> Tree:
    fields = schema.get("properties", {})
    found: Tree = {}
    for name, field in fields.items():
        if name in given or "default" in field or "properties" in _resolved(field, definitions):
            found[name] = _value(field, given.get(name), definitions)
    return found | {name: one for name, one in given.items() if name not in fields}


def _value(field: Schema, given: Tree | Leaf | None, definitions: Schema) -> Tree | Leaf:
    """Return an option: as given, or at its default; what is inside of it likewise."""
    if given is None:
        given = tree_of(field.get("default"), DEFAULT)
    if _is_method(field, definitions):
        return _method(given)
    inner = [_resolved(one, definitions) for one in (field, *field.get("anyOf", ()))]
    described = next((one for one in inner if "properties" in one), None)
    if described is None or (isinstance(given, Leaf) and given.value not in (None, {})):
        return given
    if isinstance(given, Leaf):
        return given if "default" in field and given.value is None else _object(described, {}, definitions)
    return _object(described, given, definitions)


def _is_method(field: Schema, definitions: Schema) -> bool:
    return any(METHOD in one or METHOD in _resolved(one, definitions) for one in (field, *field.get("anyOf", ())))


def _method(given: Tree | Leaf) -> Tree | Leaf:
    """Return a method inside of another's options with its own options; one word is its name."""
    if isinstance(given, Leaf):
        if not isinstance(given.value, str):
            return given
        given = {"name": given}
    name, options = given.get("name"), given.get("options", {})
    if not isinstance(name, Leaf):
        return given
    return {**given, "options": with_defaults("method", name.value, options if isinstance(options, dict) else {})}
