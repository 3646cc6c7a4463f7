"""Declarations in options: files that a trial reads, nested methods, and classes named by their path.

They are marks in the JSON schema of the options. The catalogue stores the schemas, so reading the marks needs no torch.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

Json = dict[str, Any]

INPUT, METHOD, CODE = "plumbline-input", "plumbline-method", "plumbline-code"
"""Marks in a JSON schema: an option that names a file, one that is a method, and one that names a class by its path."""


@dataclass(frozen=True)
class Input:
    """Mark of an option that names a built file: `dataset: Annotated[str, Input("features/{}.parquet")]`.

    Attributes:
        path: path of the file in the data folder, with `{}` for the option's value.
    """

    path: str

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        return {**handler(core), INPUT: self.path}


class Code:
    """Mark of an option that names a class, `package.module:Class` or `package.module.Class`.

    Its code is in the key of a trial.
    """

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        return {**handler(core), CODE: True}


def module_and_name(path: str) -> tuple[str, str]:
    """Return the module and the name of a class from its path, `module:Class` or `module.Class`; empty where absent."""
    module, _, name = path.rpartition(":" if ":" in path else ".")
    return module, name


def named_by(value: object) -> str:
    """Return how to name a class that was given where its path is wanted, in words; empty of what is no class."""
    if not isinstance(value, type):
        return ""
    if value.__module__ == "__main__":
        return f"save the class in a file, and name it by its path, 'module:{value.__name__}'"
    return f"name the class by its path, '{value.__module__}:{value.__qualname__}'"


def refuse_file(path: str) -> None:
    """Raise ValueError, with what is wanted, if the path of a class is that of a Python file."""
    file = Path(path)
    if file.suffix == ".py":
        module = ".".join(file.with_suffix("").parts if not file.is_absolute() else [file.stem])
        raise ValueError(f"{path!r} is a file: write its module and the class in it, '{module}:MyClass'")


@dataclass(frozen=True)
class Declared:
    """A marked option with its value.

    Attributes:
        mark: INPUT, METHOD or CODE.
        pattern: pattern of the file's path, empty for others.
        value: value of the option.
        place: keys and indices that lead to the option, outermost first.
    """

    mark: str
    pattern: str
    value: Any
    place: tuple[str | int, ...]

    @property
    def path(self) -> str:
        """The file's path in the data folder."""
        return self.pattern.format(self.value)


def declared(schema: Json, options: Mapping[str, Any]) -> Iterator[Declared]:
    """Yield the marked options among `options` with this JSON schema, defaults included."""
    yield from _of_mapping(schema, options, schema.get("$defs", {}), ())


def _of_mapping(
    schema: Json, options: Mapping[str, Any], definitions: Json, place: tuple[str | int, ...]
) -> Iterator[Declared]:
    for name, entry in schema.get("properties", {}).items():
        value = options.get(name, entry.get("default"))
        if value is not None:
            yield from _of_value(entry, value, definitions, (*place, name))


def _of_value(entry: Json, value: Any, definitions: Json, place: tuple[str | int, ...]) -> Iterator[Declared]:
    if INPUT in entry:
        yield Declared(INPUT, entry[INPUT], value, place)
    for mark in (METHOD, CODE):
        if mark in entry:
            yield Declared(mark, "", value, place)
            return
    if "$ref" in entry:
        yield from _of_value(definitions[entry["$ref"].rpartition("/")[2]], value, definitions, place)
    for alternatives in ("allOf", "anyOf", "oneOf"):
        for part in entry.get(alternatives, ()):
            yield from _of_value(part, value, definitions, place)
    if isinstance(value, str | int | float):
        return  # most values: to ask whether they are mappings costs more
    if isinstance(value, Mapping):
        yield from _of_mapping(entry, value, definitions, place)
        if isinstance(others := entry.get("additionalProperties"), dict):
            for name, one in value.items():
                if name not in entry.get("properties", {}):
                    yield from _of_value(others, one, definitions, (*place, name))
    if isinstance(value, list | tuple):
        first, rest = entry.get("prefixItems", []), entry.get("items")
        for i, one in enumerate(value):
            schema = first[i] if i < len(first) else rest
            if isinstance(schema, dict):
                yield from _of_value(schema, one, definitions, (*place, i))


def replaced(options: Mapping[str, Any], place: tuple[str | int, ...], value: Any) -> Json:
    """Return a copy of `options` with `value` at `place`."""
    first, *rest = place
    inner = dict(options).get(str(first), {})
    if not rest:
        return {**options, first: value}  # type: ignore[dict-item]
    if isinstance(inner, Mapping):
        return {**options, first: replaced(inner, tuple(rest), value)}  # type: ignore[dict-item]
    changed = list(inner)
    index = int(rest[0])
    changed[index] = value if len(rest) == 1 else replaced(changed[index], tuple(rest[1:]), value)
    return {**options, first: changed}  # type: ignore[dict-item]
