"""References to registered methods, problems and designs, as data."""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache, reduce
from operator import getitem
from typing import Any, Self

from pydantic import ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from plumbline.core import seeding
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.inputs import CODE, METHOD, declared, module_and_name, replaced
from plumbline.core.options import Options
from plumbline.registry.catalogue import Kind, catalogue, option_model, remembered

Json = dict[str, Any]


LONGEST_LABEL = 120
"""Characters of a label: file systems allow 255 bytes, with what is added to it."""

_LABEL = re.compile(r"[a-z0-9][a-z0-9._+-]*")


_WITH_DIMENSION = re.compile(r"(?P<family>.+)-(?P<dim>\d+)")


def canonical_json(data: Any) -> str:
    """Return `data` as JSON with sorted keys and no spaces: equal data, equal text."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def canonical_options(kind: Kind, name: str, options: Json) -> Json:
    """Spell options in one way: each with its type, without those that have their defaults, at any depth.

    Equal options are spelt alike however they were written: a float as 1, 1.0 or "1", zero as -0.0, a default left out
    or not, a method without options by its name alone. What is not valid stays as it is: its trial fails, and says why.

    Raises:
        PlumblineError: an unknown name.
    """
    return json.loads(_canonical_text(kind, name, canonical_json(options)))


@cache
def _canonical_text(kind: Kind, name: str, options: str) -> str:
    schema = catalogue().find(kind, name).options
    code = catalogue().code_outside(kind, name, json.loads(options))
    item = canonical_json(["canonical options", kind, name, schema, options, *code])
    return remembered(item, lambda: canonical_json(_canonical(kind, name, schema, json.loads(options))))


def _canonical(kind: Kind, name: str, schema: Json, options: Json) -> Json:
    try:
        found: Json = option_model(kind, name).model_validate(options).model_dump(mode="json", exclude_defaults=True)
    except ValidationError:
        return options
    for one in list(declared(schema, found)):
        if one.mark == METHOD and _holds(found, one.place):
            choice = MethodChoice.model_validate(one.value)
            inner = canonical_options("method", choice.name, choice.options)
            found = replaced(found, one.place, {"name": choice.name, "options": inner})
    return _without_negative_zeros(found)


def _holds(options: Any, place: tuple[str | int, ...]) -> bool:
    """Whether there is something at a place: of a default there is not."""
    try:
        return reduce(getitem, place, options) is not None
    except (LookupError, TypeError):
        return False


def _without_negative_zeros(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_negative_zeros(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_negative_zeros(one) for one in value]
    return value + 0.0 if isinstance(value, float) else value


def short_digest(text: str) -> str:
    """Return a digest of `text`: 16 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def safe_label(label: str) -> str:
    """Return a label that can name a file.

    Raises:
        ValueError: it is not of lower-case letters, digits and . _ + -, or has more than `LONGEST_LABEL` characters.
    """
    if not _LABEL.fullmatch(label):
        raise ValueError(f"a label is lower-case letters, digits and . _ + -, so that it can name a file: {label!r}")
    if len(label) > LONGEST_LABEL:
        raise ValueError(f"a label names a file: it has at most {LONGEST_LABEL} characters, and {label!r} {len(label)}")
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
        known = catalogue()
        if match and self.name not in known.problem and known.has("problem", match["family"]):
            if self.options.get("dim", int(match["dim"])) != int(match["dim"]):
                raise ValueError(f"{self.name!r} with option `dim: {self.options['dim']}`: which of the two is meant?")
            object.__setattr__(self, "name", match["family"])
            object.__setattr__(self, "options", {**self.options, "dim": int(match["dim"])})
        return self

    def typed(self) -> str:
        """Return the problem as one would type it, without its other options: `ackley-20`."""
        return f"{self.name}-{self.options['dim']}" if "dim" in self.options else self.name

    def stream_name(self) -> str:
        """Name the problem in its random streams: equal problems alike, however their options are spelt."""
        options = canonical_options("problem", self.name, self.options)
        schemas = catalogue().find("problem", self.name).options.get("properties", {})
        spelt = {option: schemas[option]["default"] for option in _SPELT.get(self.name, ()) if option in schemas}
        whole = {
            option: int(options[option])
            for option in _WHOLE.get(self.name, ())
            if option in options and float(options[option]).is_integer()
        }
        return seeding.identity(self.name, {**spelt, **options, **whole})


_SPELT = {
    "antibodies": ("holdout_fraction", "target"),
    "cnn": ("epochs", "images"),
    "guacamol": ("model",),
    "lasso-dna": ("dataset",),
    "molecules": ("holdout_fraction",),
    "online-lda": ("grid",),
    "rkhs": ("basis",),
}
"""Options that are in the names of a problem's streams although they have their defaults.

The studies write these defaults out, and their trials were run under the names with them: without, all would draw anew.
"""

_WHOLE = {"ackley-noisy": ("noise_factor",), "radio": ("uav_divisor",)}
"""Floats that are whole numbers in the names of streams, where they are whole: the studies write them so."""


def name_of_class(method: str, options: Mapping[str, Any]) -> str:
    """Return the name of the class that options of a method name by its path; empty where they name none.

    A method of a package that is broken has no name here: what is wrong is said where it is built.
    """
    if not catalogue().has("method", method):
        return ""
    try:
        schema = catalogue().find("method", method).options
    except PlumblineError:
        return ""
    paths = [str(one.value) for one in declared(schema, options) if one.mark == CODE]
    names = [name for module, name in map(module_and_name, paths) if module and len(name) <= LONGEST_LABEL]
    return next((name for name in names if all(part.isidentifier() for part in name.split("."))), "")


class MethodRef(Named):
    """A method; `label` is its name in figures and folders.

    By default that is the name of the class that its options name by a path, or else its registered name.
    """

    label: str = Field(default="", validate_default=True)

    @field_validator("label")
    @classmethod
    def _is_safe_in_paths(cls, label: str, info: ValidationInfo) -> str:
        name = info.data.get("name", "")
        named = name_of_class(name, info.data.get("options", {}))
        return safe_label(label) if label not in ("", named) else named or name


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
