"""Options of registered classes, as rows."""

from typing import Literal

from pydantic import Field

from plumbline.core.options import Options
from plumbline.registry.catalogue import catalogue
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


def test_everything_registered_can_be_told() -> None:
    for kind in ("method", "problem"):
        for name, listing in getattr(catalogue(), kind).items():
            paths = [option.option for option in options_of(listing.options)]
            assert len(set(paths)) == len(paths), name
            assert all(option.values for option in options_of(listing.options)), name
