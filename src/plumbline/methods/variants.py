"""Text against code: departures of a paper's published code from its text, as named sets of options."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, model_validator

from plumbline.core.nested import merge
from plumbline.core.options import Options

Json = dict[str, Any]
DepartureT = TypeVar("DepartureT", bound=str)

Variant = Literal["paper", "code"] | tuple[DepartureT, ...]
"""`paper`, the text; `code`, the published code with all of its departures; or a list of departures."""


def departures_of(variant: Variant[DepartureT], code: tuple[DepartureT, ...]) -> frozenset[DepartureT]:
    """Return the departures of a variant, given those of the published code."""
    if isinstance(variant, str):
        return frozenset(code if variant == "code" else ())
    return frozenset(variant)


class VariantOptions(Options):
    """Options with a variant: each departure of the variant overrides the values of some options.

    A subclass has a field `variant`, whose type names its departures.
    """

    departures: ClassVar[Mapping[str, Json]] = {}
    """The options that each departure sets."""

    code: ClassVar[tuple[str, ...]] = ()
    """The departures of the published code, in the order in which they override the options."""

    @model_validator(mode="before")
    @classmethod
    def _set_by_the_variant(cls, data: Any) -> Any:
        variant = data.get("variant", "paper") if isinstance(data, dict) else "paper"
        named = cls.code if variant == "code" else () if variant == "paper" else variant
        if not isinstance(named, list | tuple):
            return data  # not a variant: pydantic names the allowed ones
        for name in named:
            values = cls.departures.get(name, {}) if isinstance(name, str) else {}
            data = merge({**_defaults(cls, values), **data}, values)
        return data


def _defaults(options: type[Options], names: Mapping[str, Any]) -> Json:
    """Return the defaults of nested options: a departure changes single fields of them."""
    defaults = {name: options.model_fields[name].default for name in names}
    return {
        name: value.model_dump(exclude_unset=True) for name, value in defaults.items() if isinstance(value, BaseModel)
    }
