"""Options: strict pydantic models whose one-line errors name the field and its allowed values."""

import inspect
import re
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError, model_validator

from plumbline.core.errors import PlumblineError, unknown

_FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C loader where PyYAML was built with it: it is ten times as fast."""


class StrictLoader(_FAST):  # type: ignore[misc, valid-type]
    """YAML without merge keys (`<<`), and with every name once in a mapping."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Refuse merge keys and repeated names, which PyYAML would resolve silently."""
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        names = [key.value for key in keys]
        if "<<" not in names and len(set(names)) == len(names):
            return
        for i, key in enumerate(keys):
            if key.tag == "tag:yaml.org,2002:merge":
                problem = "merge keys (<<) are not used here: write `like: NAME`, or the fields themselves"
            elif key.value in names[:i]:
                problem = f"{key.value!r} is there twice"
            else:
                continue
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key.start_mark)


OptionsT = TypeVar("OptionsT", bound="Options")


class Options(BaseModel):
    """Base of all models of YAML content: immutable, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _name_unknown_fields(cls, data: Any) -> Any:
        """Name the allowed fields in the error, which pydantic's own message leaves out."""
        if isinstance(data, dict):
            for field in sorted(map(str, data.keys() - cls.model_fields.keys())):
                raise ValueError(str(unknown("field", field, cls.model_fields)))
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


def attribute_descriptions(docstring: str | None) -> dict[str, str]:
    """Return the descriptions in the section `Attributes` of a docstring, each on one line."""
    section = inspect.cleandoc(docstring or "").partition("\nAttributes:\n")[2]
    descriptions: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if begun := re.match(r" {4}(\w+): (.*)", line):
            name, descriptions[begun[1]] = begun[1], begun[2]
        elif line.startswith(" " * 8) and name:
            descriptions[name] += f" {line.strip()}"
        elif line.strip():
            break
    return descriptions


def one_line(error: ValidationError) -> str:
    """Return the first problem of `error` as `field.path: message (got value)`."""
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ")
    where = ".".join(str(part) for part in first["loc"])
    got = "" if first["type"] in ("value_error", "missing") else f" (got {first['input']!r})"
    more = f"; and {error.error_count() - 1} more" if error.error_count() > 1 else ""
    return f"{where}: {message}{got}{more}" if where else f"{message}{more}"


def parse(model: type[OptionsT], data: Any, source: str | Path) -> OptionsT:
    """Return `data` validated as a `model`.

    Raises:
        PlumblineError: `data` is invalid; the message has `source`, the field and its allowed values.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise PlumblineError(f"{source}: {one_line(error)}") from error


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file.

    Raises:
        PlumblineError: the file does not exist, is not YAML, has merge keys, or has a name twice in a mapping; the
            message gives the line.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=StrictLoader)
    except FileNotFoundError as error:
        raise PlumblineError(f"no file {path}") from error
    except yaml.constructor.ConstructorError as error:
        mark = error.problem_mark
        raise PlumblineError(f"{path}:{mark.line + 1 if mark else 1}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise PlumblineError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
