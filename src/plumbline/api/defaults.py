"""The options of registered classes with their defaults filled in, from their JSON schemas."""

from plumbline.api.written import Leaf, Tree, tree_of
from plumbline.core.inputs import METHOD
from plumbline.registry.catalogue import Kind, catalogue
from plumbline.registry.schema_options import Schema

DEFAULT = "default"
"""The origin of a value that is written nowhere."""


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


def _resolved(field: Schema, definitions: Schema) -> Schema:
    return definitions[field["$ref"].rpartition("/")[2]] if "$ref" in field else field
