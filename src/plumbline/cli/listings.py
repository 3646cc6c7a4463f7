"""What is registered, in words: all of a kind a line each, or one with its options."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from plumbline.registry.catalogue import Kind, catalogue

Schema = dict[str, Any]


class Option(NamedTuple):
    """One option: its path as `-p` takes it, what it may be, and its default in YAML's words."""

    path: str
    values: str
    default: str


def options_of(schema: Schema) -> Iterator[Option]:
    """Yield the options that a JSON schema describes, those of options of options by their dotted paths."""
    yield from _options(schema, schema.get("$defs", {}), "")


def _options(schema: Schema, definitions: Schema, prefix: str) -> Iterator[Option]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        inner = _resolved(field, definitions)
        if "properties" in inner:
            yield from _options(inner, definitions, f"{prefix}{name}.")
        else:
            default = "(required)" if name in required else _written(field.get("default"))
            yield Option(prefix + name, _values(field, definitions), default)


def _resolved(field: Schema, definitions: Schema) -> Schema:
    return definitions[field["$ref"].rpartition("/")[2]] if "$ref" in field else field


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _values(field: Schema, definitions: Schema) -> str:
    """Return what a field may be, in words."""
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


def print_all(kind: Kind) -> None:
    """Print everything of a kind, a line each."""
    grid = Table.grid(padding=(0, 2))
    for listing in getattr(catalogue(), kind).values():
        grid.add_row(f"[bold]{listing.name}[/bold]", escape(listing.summary))
    Console(soft_wrap=True).print(grid)


def print_one(kind: Kind, name: str) -> None:
    """Print what one is and its options; raise PlumblineError with the nearest name if there is none."""
    listing = catalogue().find(kind, name)
    console = Console(soft_wrap=True)
    console.print(f"[bold]{name}[/bold]  {escape(listing.summary)}\n[dim]{listing.module}[/dim]")
    rows = list(options_of(listing.options))
    if not rows:
        console.print("no options")
        return
    grid = Table("option", "default", "values", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        grid.add_row(escape(row.path), escape(row.default), escape(row.values))
    console.print(grid)
