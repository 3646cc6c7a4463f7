"""Options: strict pydantic models whose one-line errors name the field and its allowed values."""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from plumbline.core.errors import PlumblineError, unknown

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C loader where PyYAML was built with it: it is ten times as fast."""

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
        PlumblineError: the file does not exist, or is not YAML; the message gives the line.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
    except FileNotFoundError as error:
        raise PlumblineError(f"no file {path}") from error
    except yaml.YAMLError as error:
        raise PlumblineError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
