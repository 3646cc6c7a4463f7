"""Options: strict pydantic models whose one-line errors name the field and its allowed values."""

import inspect
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import core_schema

from plumbline.core.errors import PlumblineError, shown, unknown

OptionsT = TypeVar("OptionsT", bound="Options")


def _refuse_truth_values(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"a number is wanted (got {value})")
    return value


def _numbers_are_numbers(schema: Any) -> Any:
    """Let no number of a core schema be a truth value, which pydantic would take for 1 or 0: `seeds: yes`."""
    if isinstance(schema, dict):
        if schema.get("type") in ("int", "float"):
            return core_schema.no_info_before_validator_function(_refuse_truth_values, schema)
        if schema.get("type") == "function-before" and schema["function"]["function"] is _refuse_truth_values:
            return schema
        return {key: value if key in _NO_SCHEMAS else _numbers_are_numbers(value) for key, value in schema.items()}
    if isinstance(schema, list | tuple):
        return type(schema)(_numbers_are_numbers(one) for one in schema)
    return schema


_NO_SCHEMAS = ("config", "default", "expected", "function", "metadata", "serialization")
"""Parts of a core schema that hold no schemas of fields."""


class Options(BaseModel):
    """Base of all models of YAML content: immutable, without unknown fields, and numbers are finite numbers."""

    # Infinity, where a field allows it, as a word: JSON has no number for it, and null would be another value.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, ser_json_inf_nan="strings")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Refuse truth values where a number is wanted, at any depth of the fields."""
        whole = handler(source)
        model = cast("dict[str, Any]", handler.resolve_ref_schema(whole))
        model.update(_numbers_are_numbers(model))
        return whole

    @model_validator(mode="before")
    @classmethod
    def _name_unknown_fields(cls, data: Any) -> Any:
        """Name the allowed fields in the error, which pydantic's own message leaves out."""
        fields = cls.model_fields
        if isinstance(data, dict) and not data.keys() <= fields.keys():
            raise ValueError(str(unknown("field", min(map(str, data.keys() - fields.keys())), fields)))
        return data

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe fields by the `Attributes` of the docstrings of the class and its bases."""
        whole = handler(core_schema)
        schema = handler.resolve_ref_schema(whole)
        for base in cls.__mro__:
            for name, text in attribute_descriptions(base.__doc__).items():
                if name in schema.get("properties", {}):
                    schema["properties"][name].setdefault("description", text)
        if "description" in schema:
            schema["description"] = schema["description"].partition("\n\nAttributes:\n")[0]
        return whole


ValuesT = TypeVar("ValuesT", bound=Sequence[Any])


def distinct(values: ValuesT) -> ValuesT:
    """Refuse a value that is in a list twice: `Annotated[tuple[str, ...], AfterValidator(distinct)]`.

    Raises:
        ValueError: a value is there twice.
    """
    first: dict[Any, int] = {}
    for item, value in enumerate(values, 1):
        if value in first:
            raise ValueError(f"{shown(value)} is there twice, as items {first[value]} and {item} of the list")
        first[value] = item
    return values


def attribute_descriptions(docstring: str | None) -> dict[str, str]:
    """Return the descriptions in the section `Attributes` of a docstring, each on one line.

    Fields that share one, `low, high: both ends`, have it each.
    """
    section = inspect.cleandoc(docstring or "").partition("\nAttributes:\n")[2]
    descriptions: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if begun := re.match(r" {4}(\w+(?:, \w+)*): (.*)", line):
            names = begun[1].split(", ")
            descriptions |= dict.fromkeys(names, begun[2])
        elif line.startswith(" " * 8) and names:
            descriptions |= {name: f"{descriptions[name]} {line.strip()}" for name in names}
        elif line.strip():
            break
    return descriptions


A_LIST, A_MAPPING = "a list is wanted", "a mapping is wanted"

WANTED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("tuple_type", "list_type", "set_type", "frozen_set_type"), A_LIST),
        **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), A_MAPPING),
        "too_short": "at least {min_length} wanted, {actual_length} given",
        "too_long": "at most {max_length} wanted, {actual_length} given",
    }
)
"""What is wanted, by pydantic's kind of error, where its own words are Python's."""


def one_line(error: ValidationError, called: Mapping[str, str] = MappingProxyType({})) -> str:
    """Tell the first problem of `error` on one line, as `field.path: message (got value)`.

    Args:
        error: of pydantic.
        called: names of fields for who wrote them elsewhere, by their paths.
    """
    first = error.errors()[0]
    wanted = WANTED.get(first["type"])
    message = wanted.format(**first.get("ctx", {})) if wanted else first["msg"].removeprefix("Value error, ")
    # Of alternatives pydantic names those that failed, a function by its representation: no field's name has brackets.
    where = ".".join(str(part) for part in first["loc"] if "[" not in str(part))
    got = "" if first["type"] in ("value_error", "missing") else f" (got {shown(first['input'], LONGEST_SHOWN)})"
    more = f"; and {error.error_count() - 1} more" if error.error_count() > 1 else ""
    where = called.get(where, where)
    return " ".join((f"{where}: {message}{got}{more}" if where else f"{message}{more}").split())


LONGEST_SHOWN = 200
"""Characters of a wrong value that an error shows."""


def parse(
    model: type[OptionsT], data: Any, source: str | Path, called: Mapping[str, str] = MappingProxyType({})
) -> OptionsT:
    """Return `data` validated as a `model`; fields go by what they are `called`, where that is not their paths.

    Raises:
        PlumblineError: `data` is invalid; the message has `source`, the field and its allowed values.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise PlumblineError(f"{source}: {one_line(error, called)}") from error
