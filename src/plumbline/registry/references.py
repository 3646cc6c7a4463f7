"""References to registered methods, problems and designs, as data."""

import hashlib
import json
import re
from typing import Any, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from plumbline.core.errors import unknown
from plumbline.core.inputs import METHOD
from plumbline.core.options import Options
from plumbline.registry.catalogue import catalogue

Json = dict[str, Any]


_LABEL = re.compile(r"[a-z0-9][a-z0-9._+-]*")


_WITH_DIMENSION = re.compile(r"(?P<family>.+)-(?P<dim>\d+)")


def canonical_json(data: Any) -> str:
    """Return `data` as JSON with sorted keys and no spaces: equal data, equal text."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def short_digest(text: str) -> str:
    """Return a digest of `text`: 16 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def safe_label(label: str) -> str:
    """Return `label` if it can name a file; raise ValueError otherwise."""
    if not _LABEL.fullmatch(label):
        raise ValueError(f"a label is lower-case letters, digits and . _ + -, so that it can name a file: {label!r}")
    return label


class Named(Options):
    """A registered name with its options."""

    name: str
    options: Json = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_a_word(cls, data: Any) -> Any:
        return {"name": data} if isinstance(data, str) else data


class MethodChoice(Named):
    """A method inside the options of its wrapper; one without options may be its name alone."""

    model_config = ConfigDict(json_schema_extra={METHOD: True, "type": ["object", "string"]})


class ProblemRef(Named):
    """A problem; `ackley-20` is short for name `ackley` with option `dim: 20`."""

    @model_validator(mode="after")
    def _split_dimension(self) -> Self:
        match = _WITH_DIMENSION.fullmatch(self.name)
        if match and self.name not in catalogue().problem and match["family"] in catalogue().problem:
            if self.options.get("dim", int(match["dim"])) != int(match["dim"]):
                raise ValueError(f"{self.name!r} with option `dim: {self.options['dim']}`: which of the two is meant?")
            object.__setattr__(self, "name", match["family"])
            object.__setattr__(self, "options", {**self.options, "dim": int(match["dim"])})
        return self

    def typed(self) -> str:
        """Return the problem as one would type it, without its other options: `ackley-20`."""
        return f"{self.name}-{self.options['dim']}" if "dim" in self.options else self.name


class MethodRef(Named):
    """A method; `label` is its name in figures and folders, by default its registered name."""

    label: str = Field(default="", validate_default=True)

    @field_validator("label")
    @classmethod
    def _is_safe_in_paths(cls, label: str, info: ValidationInfo) -> str:
        return safe_label(label) if label else info.data.get("name", "")


class InitialDesign(Options):
    """The initial design of a trial.

    Attributes:
        design: a registered initial design (see `plumbline.designs`).
        size: number of its points.
        options: options of the design.
    """

    design: str
    size: int = Field(ge=1, le=100_000)
    options: Json = Field(default_factory=dict)

    @field_validator("design")
    @classmethod
    def _is_known(cls, design: str) -> str:
        known = catalogue().design
        if design not in known:
            raise ValueError(str(unknown("design", design, known)))
        return design
