"""The options of registered classes with their defaults filled in, each with where it is written."""

from typing import Any

from plumbline.api.written import Leaf, Tree, values_of
from plumbline.registry import default_options
from plumbline.registry.catalogue import Kind
from plumbline.registry.schema_options import Schema

DEFAULT = "default"
"""The origin of a value that is written nowhere."""


def with_defaults(kind: Kind, name: str, given: Tree) -> Tree:
    """Return the options of a registered class, `given` ones as they are and all others at their defaults."""
    return _with_origins(default_options.with_defaults(kind, name, values_of(given)), given)


def fill_in(schema: Schema, given: Tree) -> Tree:
    """Return a tree with the defaults of a JSON schema where it has none of its own, at any depth."""
    return _with_origins(default_options.fill_in(schema, values_of(given)), given)


def _with_origins(values: dict[str, Any], given: Tree) -> Tree:
    return {name: _with_origin(value, given.get(name)) for name, value in values.items()}


def _with_origin(value: Any, given: Tree | Leaf | None) -> Tree | Leaf:
    """Return a value with its origin; a method that is given by one word has it as its name."""
    if isinstance(value, dict) and value:
        return _with_origins(value, {"name": given} if isinstance(given, Leaf) else given or {})
    return given if isinstance(given, Leaf) and given.value == value else Leaf(value, DEFAULT)
