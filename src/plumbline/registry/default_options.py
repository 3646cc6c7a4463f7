"""Options of registered classes with their defaults filled in, from their JSON schemas.

The schema serves where the options' own classes would: reading those means importing torch.
"""

from collections.abc import Mapping
from typing import Any

from plumbline.core.inputs import METHOD
from plumbline.registry.catalogue import Kind, catalogue
from plumbline.registry.schema_options import Schema, resolved


def with_defaults(kind: Kind, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a registered class, `given` ones as they are and all others at their defaults.

    Raises:
        PlumblineError: there is no such class.
    """
    return fill_in(catalogue().find(kind, name).options, given)


def fill_in(schema: Schema, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the defaults of a JSON schema where they have none of their own, at any depth."""
    return _object(schema, given, schema.get("$defs", {}))


def _object(schema: Schema, given: Mapping[str, Any], definitions: Schema) -> dict[str, Any]:
    fields = schema.get("properties", {})
    found = {
        name: _value(field, given[name] if name in given else field.get("default"), definitions)
        for name, field in fields.items()
        if name in given or "default" in field or "properties" in resolved(field, definitions)
    }
    return found | {name: one for name, one in given.items() if name not in fields}


def _value(field: Schema, given: Any, definitions: Schema) -> Any:
    """Return an option with the defaults of what is inside of it."""
    inner = [resolved(one, definitions) for one in (field, *field.get("anyOf", ()))]
    if any(METHOD in one for one in (field, *field.get("anyOf", ()), *inner)):
        return _method(given)
    described = next((one for one in inner if "properties" in one), None)
    if described is None or (given is None and "default" in field):
        return given
    return _object(described, given or {}, definitions) if isinstance(given, Mapping | None) else given


def _method(given: Any) -> Any:
    """Return a method inside of another's options with its own options; one word is its name."""
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
        return given
    return {**given, "options": with_defaults("method", given["name"], given.get("options") or {})}
