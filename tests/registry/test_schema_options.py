"""Options of registered classes, as rows."""

from typing import Literal, get_args

import pytest
from pydantic import Field

from plumbline.core.options import Options
from plumbline.registry.catalogue import Kind, catalogue
from plumbline.registry.references import MethodChoice
from plumbline.registry.schema_options import options_of


class Inner(Options):
    kernel: Literal["rbf", "matern52"] = "rbf"
    ard: bool = True


class Outer(Options):
    """Options with options.

    Attributes:
        dim: number of inputs, of which there are
            few.
        count: whatever
    """

    dim: int = Field(gt=0, le=9)
    model: Inner = Inner()
    level: float | Literal["auto"] | None = None
    names: tuple[str, ...] = ()
    members: tuple[MethodChoice, ...] = ()
    more: dict[str, int] = Field(default_factory=dict, description="all else")
    count: int = 1


def test_options_are_told_with_paths_values_and_defaults() -> None:
    found = [tuple(option) for option in options_of(Outer.model_json_schema())]
    assert found == [
        ("dim", "(required)", "integer (> 0, <= 9)", "number of inputs, of which there are few."),
        ("model.kernel", "rbf", "rbf | matern52", ""),
        ("model.ard", "true", "boolean", ""),
        ("level", "null", "number or auto or null", ""),
        ("names", "[]", "list of string", ""),
        ("members", "[]", "list of object or string", ""),
        ("more", "{}", "object", "all else"),
        ("count", "1", "integer", "whatever"),
    ]


class Item(Options):
    """A point.

    Attributes:
        at, label: where it is, and
            its name.
        within: what it has.
    """

    at: float
    label: str = ""
    within: tuple[Inner, ...] = ()


class Perhaps(Options):
    near: Item | None = None


def test_what_an_optional_object_has_is_told_where_asked_for() -> None:
    found = [option.option for option in options_of(Perhaps.model_json_schema(), inside=True)]
    assert found == ["near", "near.at", "near.label", "near.within", "near.within[].kernel", "near.within[].ard"]
    assert [option.option for option in options_of(Perhaps.model_json_schema())] == ["near"]


class Lists(Options):
    points: tuple[Item, ...] = (Item(at=1.0), Item(at=2.0, label="b", within=(Inner(),)))


def test_items_of_lists_are_told_where_asked_for() -> None:
    found = [tuple(option) for option in options_of(Lists.model_json_schema(), inside=True)]
    default = '[{"at": 1.0}, {"at": 2.0, "label": "b", "within": [{"ard": true, "kernel": "rbf"}]}]'
    assert found == [
        ("points", default, "list of object", ""),
        ("points[].at", "(required)", "number", "where it is, and its name."),
        ("points[].label", "", "string", "where it is, and its name."),
        ("points[].within", "[]", "list of object", "what it has."),
        ("points[].within[].kernel", "rbf", "rbf | matern52", ""),
        ("points[].within[].ard", "true", "boolean", ""),
    ]
    assert [tuple(option) for option in options_of(Lists.model_json_schema())] == found[:1]


@pytest.mark.parametrize("kind", get_args(Kind))
def test_everything_registered_can_be_told(kind: Kind) -> None:
    for name, listing in getattr(catalogue(), kind).items():
        found = list(options_of(listing.options, inside=True))
        assert len({option.option for option in found}) == len(found), name
        assert all(option.values for option in found), name


@pytest.mark.parametrize("kind", ["figure", "table"])
def test_every_option_of_an_output_has_a_meaning(kind: Kind) -> None:
    for name, listing in getattr(catalogue(), kind).items():
        assert [option.option for option in options_of(listing.options, inside=True) if not option.description] == [], (
            name
        )
